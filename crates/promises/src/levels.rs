//! Levels of networks: hosts and switches distinguish seven for promises, and one for best effort (Zhu's thesis, section
//! 2.2.2).

use leeward_slo::priorities;

/// Number of levels for promises.
pub const LEVELS: u8 = priorities::LEVELS as u8;

/// Level of a priority, 0 first. Priorities beyond the levels share the last one.
pub fn level(priority: u32) -> u8 {
    u8::try_from(priority).unwrap_or(u8::MAX).min(LEVELS - 1)
}

/// Class selector of a level, which is the DSCP of its packets: 7 for the first one, down to 1; best effort is the level
/// after the last one, with 0.
pub fn class_selector(level: u8) -> u8 {
    LEVELS.saturating_sub(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seven_priorities_have_the_class_selectors_and_all_others_the_last_one() {
        let selector = |priority| class_selector(level(priority));
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(selector), [7, 6, 5, 4, 3, 2, 1]);
        assert_eq!([7, 99, 255, 256, u32::MAX].map(selector), [1; 5]);
        assert_eq!(class_selector(LEVELS), 0);
    }
}
