//! Tables of quality: by the age of digests and the choice of cells, by losses, and with a cell away.

use std::fmt::Write;

use leeward_cells::{Arm, Summary};

use crate::support::runs;

/// A row for each run.
fn table(title: &str, change: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "{title}\n{:<22} {:>8} {:>6} {:>8} {:>6} {:>6} {:>8} {:>8} {:>8}",
        "run", "fullest", "p98", "excess", "racks", "hot", "rejected", "crossed", "wait ms"
    );
    for run in runs(change) {
        let Summary { core, racks, hot, rejected, crossed, wait_mean, .. } = Summary::of(&run);
        let name = match run.arm {
            Arm::OneLedger => "one ledger".to_owned(),
            Arm::Cells { interval, loss, absent } => {
                format!("{interval}, loss {loss}{}", if absent { ", away" } else { "" })
            }
        };
        let _ = writeln!(
            out,
            "{name:<22} {:>8.3} {:>6.3} {:>8.4} {:>6.3} {hot:>6.3} {rejected:>8.4} {crossed:>8.3} {:>8.1}",
            core.fullest,
            core.p98,
            core.excess,
            racks.p98,
            1e3 * wait_mean
        );
    }
    out.push('\n');
}

#[test]
fn quality_by_age_by_loss_and_with_a_cell_away() {
    let mut tables = String::new();
    let load = "horizon: 40s\nwarmup: 8s\nwrites: {load: 400}";
    for choice in ["best", "two", "random"] {
        table(
            &format!("choice {choice}"),
            &format!(
                "{load}\nchoice: {choice}\nexchange: {{intervals: [0s, 1s, 8s], delay: 2ms, timeout: 20ms}}"
            ),
            &mut tables,
        );
    }
    table(
        "answers without the state of the cell",
        &format!(
            "{load}\nchoice: best\n\
             exchange: {{intervals: [1s, 8s], delay: 2ms, timeout: 20ms, answers_carry_state: false}}"
        ),
        &mut tables,
    );
    table(
        "losses, and a cell away for a quarter of the time",
        &format!(
            "{load}\nexchange: {{losses: [0, 0.1, 0.5], delay: 2ms, timeout: 20ms}}\n\
             absent: [{{cell: 1, from: 16s, until: 24s}}]"
        ),
        &mut tables,
    );
    insta::assert_snapshot!(tables);
}
