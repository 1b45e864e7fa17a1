ragged.dim @batch
ragged.dim @seq(@batch)

func.func @f(%rows: index, %n: tensor<?xindex>, %layers: index, %out: memref<?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %layer = %c0 to %layers step %c1 {
    ragged.forall %b in @batch to %rows : index attributes {fuse} {
      ragged.forall %s in @seq(%b) to %n : tensor<?xindex> {
        memref.store %s, %out[%b, %s] : memref<?x?xindex>
      }
    }
    ragged.forall %b in @batch to %rows : index attributes {fuse, hfuse = "parts"} {
      ragged.forall %s in @seq(%b) to %n : tensor<?xindex> attributes {split = 32} {
        memref.store %b, %out[%b, %s] : memref<?x?xindex>
      }
    }
  }
  return
}
