//! Checks of what gradients are computed by.

use cohort_abi::manifest::{
    Elem, GradientFunction, Gradients, Kernel, Manifest, OfCall, Operand, Site, SiteValue, Type,
};

use crate::program::slot::slot_count;

pub fn validate(manifest: &Manifest) -> Result<(), String> {
    let Some(gradients) = &manifest.gradients else {
        return Ok(());
    };
    for helper in &gradients.helpers {
        super::pool(manifest, helper.pool)?;
    }
    for function in &gradients.functions {
        let kernel = manifest.kernels.get(function.kernel);
        let kernel = kernel.ok_or_else(|| format!("no kernel {}", function.kernel))?;
        self::function(manifest, kernel, function)
            .and_then(|()| same_sites(gradients, function))
            .map_err(|problem| format!("`{}`: {problem}", function.symbol))?;
    }
    Ok(())
}

fn function(
    manifest: &Manifest,
    kernel: &Kernel,
    function: &GradientFunction,
) -> Result<(), String> {
    for argument in &function.arguments {
        super::ty(manifest, &argument.ty)?;
        let fits = match (argument.of, &argument.ty) {
            (OfCall::Operand(number), ty) => {
                let operand = kernel.operands.get(number);
                operand.is_some_and(|operand| is_of(*operand, ty))
            }
            (
                OfCall::Result(number) | OfCall::Cotangent(number) | OfCall::Addend(number),
                Type::Tensor { pool } | Type::Ragged { pool, .. },
            ) => kernel.results.get(number) == Some(pool),
            _ => false,
        };
        let lengths = &argument.lengths;
        let is_length = |number: &usize| kernel.operands.get(*number) == Some(&Operand::Length);
        if !fits || 1 + lengths.len() != slot_count(&argument.ty) || !lengths.iter().all(is_length)
        {
            return Err("an argument that does not fit the kernel".to_owned());
        }
    }
    for result in &function.results {
        super::ty(manifest, &result.ty)?;
        let pool = pool_of(&result.ty).ok_or("a result that is not a tensor")?;
        let fits = match result.operand.map(|number| kernel.operands.get(number)) {
            None => true,
            Some(Some(
                Operand::Row { pool: own }
                | Operand::Rows { pool: own }
                | Operand::Ragged { pool: own, .. },
            )) => *own == pool,
            Some(_) => false,
        };
        if !fits {
            return Err("a result that does not fit the kernel".to_owned());
        }
    }
    for site in &function.sites {
        self::site(manifest, function, site)?;
    }
    Ok(())
}

/// A function that takes cotangents in two parts has the sites of the one that takes them whole: the rows of
/// both are summed up together.
fn same_sites(gradients: &Gradients, function: &GradientFunction) -> Result<(), String> {
    if !function.takes_parts() {
        return Ok(());
    }
    let whole = gradients.whole(function);
    let whole = whole.map(|number| &gradients.functions[number]);
    let whole = whole.ok_or("its kernel has no gradient function for undivided cotangents")?;
    let described = |function: &GradientFunction| -> Vec<_> {
        let sites = function.sites.iter().map(|site| {
            let row = |value| row_of(function, value);
            let rows = (site.left.map(row), row(site.right));
            (
                site.param,
                site.offset,
                site.shape.clone(),
                site.strides.clone(),
                rows,
            )
        });
        sites.collect()
    };
    match described(function) == described(whole) {
        true => Ok(()),
        false => Err(format!("other sites than those of `{}`", whole.symbol)),
    }
}

/// Whether an operand of a call can be an argument of this type.
fn is_of(operand: Operand, ty: &Type) -> bool {
    match (operand, ty) {
        (Operand::Row { pool }, Type::Tensor { pool: own })
        | (Operand::Ragged { pool, .. }, Type::Ragged { pool: own, .. }) => pool == *own,
        (Operand::Rows { pool }, Type::Array(element)) => **element == Type::Tensor { pool },
        (Operand::Scalar(elem), Type::Scalar(own)) => elem == *own,
        (Operand::Length, Type::Scalar(_)) => true,
        _ => false,
    }
}

fn site(manifest: &Manifest, function: &GradientFunction, site: &Site) -> Result<(), String> {
    let param = manifest
        .params
        .get(site.param)
        .filter(|param| param.elem == Elem::F32);
    let param = param.ok_or("a site of no parameter of floats")?;
    let elements: u64 = param.shape.iter().product();
    let mut last = Some(site.offset);
    let mut size = 1_u64;
    for (length, stride) in site.shape.iter().zip(&site.strides) {
        let further = length.saturating_sub(1).checked_mul(*stride);
        last = last
            .zip(further)
            .and_then(|(last, further)| last.checked_add(further));
        size = size.saturating_mul(*length);
    }
    let is_inside =
        site.shape.len() == site.strides.len() && last.is_some_and(|last| last < elements);
    if size > elements || size > 0 && !is_inside {
        return Err(format!("a site outside of `{}`", param.name));
    }
    let row = |value: SiteValue| {
        let pool = &manifest.row_pools[row_of(function, value)?];
        (pool.elem == Elem::F32).then(|| pool.row_elements())
    };
    let whole = |elements: Option<u64>, of: u64| {
        elements.is_some_and(|elements| of == 0 || elements.is_multiple_of(of))
    };
    let fits = match (site.left, &site.shape[..]) {
        (Some(left), [rows, columns]) => {
            whole(row(left), *rows) && whole(row(site.right), *columns)
        }
        (None, _) => whole(row(site.right), size),
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err(format!("a site of `{}` whose rows do not fit", param.name)),
    }
}

/// The row pool of the rows of a site's value.
fn row_of(function: &GradientFunction, value: SiteValue) -> Option<usize> {
    let ty = match value {
        SiteValue::Argument(number) => function.arguments.get(number).map(|own| &own.ty),
        SiteValue::Result(number) => function.results.get(number).map(|own| &own.ty),
    };
    ty.and_then(pool_of)
}

fn pool_of(ty: &Type) -> Option<usize> {
    match ty {
        Type::Tensor { pool } | Type::Ragged { pool, .. } => Some(*pool),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cohort_abi::manifest::{GradientArgument, SiteValue};

    use super::*;

    fn function(parts: &[OfCall], shape: &[u64]) -> GradientFunction {
        let argument = |of: &OfCall| GradientArgument {
            of: *of,
            ty: Type::Tensor { pool: 0 },
            lengths: vec![],
        };
        GradientFunction {
            kernel: 0,
            symbol: "back".to_owned(),
            arguments: parts.iter().map(argument).collect(),
            results: vec![],
            sites: vec![Site {
                param: 0,
                offset: 0,
                shape: shape.to_vec(),
                strides: vec![1; shape.len()],
                left: None,
                right: SiteValue::Argument(0),
            }],
            refused: None,
        }
    }

    #[test]
    fn what_takes_parts_has_the_sites_of_what_takes_the_whole() {
        let whole = function(&[OfCall::Cotangent(0)], &[4]);
        let both = [OfCall::Cotangent(0), OfCall::Addend(0)];
        let check = |functions: Vec<GradientFunction>| {
            let gradients = Gradients {
                functions,
                ..Gradients::default()
            };
            let mut all = gradients.functions.iter();
            all.try_for_each(|function| same_sites(&gradients, function))
        };
        assert_eq!(check(vec![whole.clone(), function(&both, &[4])]), Ok(()));
        let alone = check(vec![function(&both, &[4])]).unwrap_err();
        assert_eq!(
            alone,
            "its kernel has no gradient function for undivided cotangents"
        );
        let other = check(vec![whole, function(&both, &[3])]).unwrap_err();
        assert_eq!(other, "other sites than those of `back`");
    }
}
