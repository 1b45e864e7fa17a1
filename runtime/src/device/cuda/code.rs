//! Which of an artifact's codes a device takes.

use super::Problem;
use crate::program::artifact::{DeviceCode, DeviceFormat};

/// The codes for a device of that compute capability, the best one first: CUBINs of its own
/// generation, the closest one first, then PTX, that of the latest generation first. Of two as close, the one for this
/// device alone uses more of it.
pub fn choose(codes: &[DeviceCode], capability: (u32, u32)) -> Result<Vec<&DeviceCode>, Problem> {
    let fitting = codes.iter().filter_map(|code| {
        let target = Target::parse(&code.target)?;
        let is_cubin = code.format == DeviceFormat::Cubin;
        let is_earlier = target.capability <= capability;
        let fits = match (is_cubin, target.scope) {
            (_, Scope::Exact) => target.capability == capability,
            (true, _) | (_, Scope::Family) => is_earlier && target.capability.0 == capability.0,
            (false, Scope::Open) => is_earlier,
        };
        let is_exact = matches!(target.scope, Scope::Exact);
        fits.then_some(((is_cubin, target.capability, is_exact), code))
    });
    let mut fitting: Vec<_> = fitting.collect();
    fitting.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    match fitting.is_empty() {
        true => Err(unfit(codes, capability)),
        false => Ok(fitting.into_iter().map(|(_, code)| code).collect()),
    }
}

fn unfit(codes: &[DeviceCode], (major, minor): (u32, u32)) -> Problem {
    let listed: Vec<String> = codes
        .iter()
        .map(|code| match code.format {
            DeviceFormat::Cubin => code.target.clone(),
            DeviceFormat::Ptx => format!("{} and later", code.target),
        })
        .collect();
    Problem::NoCode(match listed.is_empty() {
        true => "the program has no code for GPUs".to_owned(),
        false => format!(
            "it is an sm_{major}{minor}, and the program has code for {}",
            listed.join(", ")
        ),
    })
}

struct Target {
    capability: (u32, u32),
    scope: Scope,
}

/// What a target's suffix says.
#[derive(Clone, Copy)]
enum Scope {
    Open,
    /// `sm_100f`: for devices of the same first number.
    Family,
    /// `sm_90a`: for no other device.
    Exact,
}

impl Target {
    fn parse(name: &str) -> Option<Target> {
        let digits = name
            .strip_prefix("sm_")
            .or_else(|| name.strip_prefix("compute_"))?;
        let (digits, scope) = match digits.strip_suffix('a') {
            Some(digits) => (digits, Scope::Exact),
            None => match digits.strip_suffix('f') {
                Some(digits) => (digits, Scope::Family),
                None => (digits, Scope::Open),
            },
        };
        let number: u32 = digits.parse().ok()?;
        Some(Target {
            capability: (number / 10, number % 10),
            scope,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(target: &str, format: DeviceFormat) -> DeviceCode {
        DeviceCode {
            target: target.to_owned(),
            format,
            bytes: vec![],
        }
    }

    #[test]
    fn the_closest_code_is_taken() {
        use DeviceFormat::{Cubin, Ptx};
        let codes = [
            code("sm_80", Cubin),
            code("sm_90", Cubin),
            code("sm_90a", Cubin),
            code("sm_80", Ptx),
            code("sm_86", Cubin),
            code("sm_90", Ptx),
            code("sm_120f", Ptx),
            code("sm_x", Cubin),
        ];
        let chosen = |capability| {
            let code = choose(&codes, capability).unwrap()[0];
            (code.target.as_str(), code.format)
        };
        assert_eq!(chosen((8, 0)), ("sm_80", Cubin));
        assert_eq!(chosen((8, 9)), ("sm_86", Cubin));
        assert_eq!(chosen((9, 0)), ("sm_90a", Cubin));
        assert_eq!(chosen((10, 0)), ("sm_90", Ptx));
        assert_eq!(chosen((12, 1)), ("sm_120f", Ptx));
        assert_eq!(chosen((13, 0)), ("sm_90", Ptx));
        // What does not load may be compiled.
        let all = choose(&codes, (8, 9)).unwrap();
        let all: Vec<_> = all
            .iter()
            .map(|code| (code.target.as_str(), code.format))
            .collect();
        assert_eq!(all, [("sm_86", Cubin), ("sm_80", Cubin), ("sm_80", Ptx)]);
        assert_eq!(
            choose(&codes, (7, 5)).unwrap_err().to_string(),
            "it is an sm_75, and the program has code for sm_80, sm_90, sm_90a, sm_80 and later, \
             sm_86, sm_90 and later, sm_120f and later, sm_x"
        );
        assert!(
            choose(&[], (9, 0))
                .unwrap_err()
                .to_string()
                .contains("no code for GPUs")
        );
    }
}
