//! Properties of every schedule of every scheduler, and errors if no schedule exists.

use leeward_circuits::schedulers::REGISTRY;
use leeward_circuits::{
    CircuitsError, Day, DayServed, DemandMatrix, Guarantees, Matching, Network, Schedule, Scheduler,
    Violation, check, evaluate,
};
use leeward_fabric::{Bandwidth, Nanos};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Demands of 2 to 20 racks: none, small, excessive; rings, hubs and all pairs.
fn demands() -> impl Strategy<Value = DemandMatrix> {
    let entry = prop_oneof![
        3 => Just(0u64),
        2 => 1u64..20_000,
        3 => 20_000u64..3_000_000,
        2 => 3_000_000u64..60_000_000,
    ];
    (2usize..20).prop_flat_map(move |racks| {
        prop::collection::vec(entry.clone(), racks * racks).prop_map(move |mut bytes| {
            (0..racks).for_each(|rack| bytes[rack * racks + rack] = 0);
            DemandMatrix::new(racks, bytes).unwrap()
        })
    })
}

/// Networks with nights and minimum days of any length that a week has room for.
fn networks() -> impl Strategy<Value = Network> {
    let times = (1u64..3000).prop_flat_map(|week| (Just(week), 0..week));
    let times = times.prop_flat_map(|(week, night)| (Just(week), Just(night), 0..=week - night));
    (times, 1u64..200, 1u64..50, any::<bool>()).prop_map(|((week, night, min_day), circuit, packet, odd)| {
        // Some networks have times that are not whole microseconds.
        let unit = if odd { 1300 } else { 1000 };
        let times = [night, week, min_day].map(|time| Nanos(time * unit));
        let rates = [circuit, packet].map(|rate| Bandwidth(rate * 1_000_000_000));
        Network::new(rates[0], rates[1], times[0], times[1], times[2]).unwrap()
    })
}

/// Settings with which a scheduler supports any network.
fn settings(name: &str) -> &'static str {
    match name {
        "rotor" => "day: 90us",
        "opera" => "{day: 90us, draws: 2}",
        "fixed" => "days: [{length: 50us, circuits: [[0, 1], [1, 0]]}, {length: 3ms, circuits: [[1, 0]]}]",
        _ => "",
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_meets_its_guarantees_and_its_demand_balance(
        demand in demands(), network in networks()
    ) {
        for registration in REGISTRY {
            let scheduler = REGISTRY.make(registration.name, settings(registration.name)).unwrap();
            let schedule = match scheduler.schedule(&demand, &network) {
                Ok(schedule) => schedule,
                Err(CircuitsError::Unfit { .. }) => continue,
                Err(error) => return Err(TestCaseError::fail(format!("{}: {error}", registration.name))),
            };
            let result = check(&schedule, demand.racks(), &network, scheduler.guarantees());
            prop_assert!(result.is_ok(), "{}: {}", registration.name, result.unwrap_err());
            let result = evaluate(&schedule, &demand, &network).unwrap();
            prop_assert_eq!(result.served + result.left.total(), demand.total());
            prop_assert_eq!(result.served, result.days.iter().map(|day| day.served).sum::<u64>());
            let mut left = demand.bytes().to_vec();
            for circuit in result.days.iter().flat_map(|day| &day.circuits) {
                left[circuit.source * demand.racks() + circuit.destination] -= circuit.bytes;
            }
            prop_assert_eq!(&left[..], result.left.bytes());
            // The same input gives the same schedule.
            prop_assert_eq!(scheduler.schedule(&demand, &network).unwrap(), schedule);
        }
    }

    #[test]
    fn circuits_of_solstice_and_eclipse_connect_pairs_with_demand(
        demand in demands(), network in networks()
    ) {
        // Solstice in two variants, and Eclipse: the schedulers that stop when no demand is left.
        for name in ["solstice", "eclipse", "solstice-paper"] {
            // A circuit of each of these networks carries more bytes in a week than there are racks, so all fit.
            let schedule = REGISTRY.make(name, "").unwrap().schedule(&demand, &network).unwrap();
            let result = evaluate(&schedule, &demand, &network).unwrap();
            // Days of the published Solstice last whole nanoseconds, so rounding may let a day carry all bytes of a
            // later circuit.
            let rounded = network.carries(Nanos(result.days.len() as u64)) + result.days.len() as u64;
            let is_short = |day: &DayServed| name == "solstice-paper" && network.carries(day.length) <= rounded;
            for day in &result.days {
                for circuit in &day.circuits {
                    prop_assert!(demand.get(circuit.source, circuit.destination) > 0, "{name}: {circuit:?}");
                    prop_assert!(name == "solstice" || circuit.bytes > 0 || is_short(day), "{name}: {circuit:?}");
                }
            }
        }
    }

    #[test]
    fn weeks_of_both_solstices_are_full_if_there_is_demand(demand in demands()) {
        let network = Network::default();
        for name in ["solstice", "solstice-etalon"] {
            let schedule = REGISTRY.make(name, "").unwrap().schedule(&demand, &network).unwrap();
            let full = if demand.total() == 0 && name == "solstice" { Nanos(0) } else { network.week() };
            prop_assert_eq!(schedule.length(), full);
        }
    }
}

/// Neither scheduler is better for every demand, so the test compares sums over many demands.
#[test]
fn partial_matchings_serve_about_as_much_as_eclipse() {
    let network = Network::default();
    let served = |name: &str, settings: &str, demand: &DemandMatrix| {
        let schedule = REGISTRY.make(name, settings).unwrap().schedule(demand, &network).unwrap();
        evaluate(&schedule, demand, &network).unwrap().served as f64
    };
    let mut runner = TestRunner::deterministic();
    let (mut solstice, mut eclipse, mut etalon) = (0.0, 0.0, 0.0);
    for _ in 0..400 {
        let demand = demands().new_tree(&mut runner).unwrap().current();
        solstice += served("solstice", "", &demand);
        eclipse += served("eclipse", "keep_min_day: true", &demand);
        etalon += served("solstice-etalon", "", &demand);
    }
    println!(
        "served of eclipse's: solstice {:.3}, solstice-etalon {:.3}",
        solstice / eclipse,
        etalon / eclipse
    );
    assert!(solstice >= 0.92 * eclipse && solstice >= 1.2 * etalon, "{solstice} {eclipse} {etalon}");
}

#[test]
fn packets_can_carry_the_rest_of_the_published_solstice() {
    let racks = 12;
    let entry = |at: usize| ((at / racks != at % racks) as u64) * (at as u64 * 7_919_993 % 5_000_000);
    let demand = DemandMatrix::new(racks, (0..racks * racks).map(entry).collect()).unwrap();
    let network = Network::default();
    let schedule = REGISTRY.make("solstice-paper", "").unwrap().schedule(&demand, &network).unwrap();
    let result = evaluate(&schedule, &demand, &network).unwrap();
    assert!(result.packets_take <= schedule.length(), "{} in {}", result.packets_take, schedule.length());
    assert!(result.left.total() > 0);
}

#[test]
fn strobe_is_a_round_of_seven_days_among_eight_racks() {
    let demand = DemandMatrix::new(8, vec![0; 64]).unwrap();
    let schedule = REGISTRY.make("strobe", "").unwrap().schedule(&demand, &Network::default()).unwrap();
    assert_eq!((schedule.days().len(), schedule.length()), (7, Nanos(1_400_000)));
    assert!(schedule.days()[0].matching.circuits().any(|circuit| circuit == (0, 1)));
    assert!(schedule.days()[6].matching.circuits().any(|circuit| circuit == (1, 0)));
}

#[test]
fn impossible_schedules_are_rejected_with_the_expected_values() {
    let demand = DemandMatrix::new(3, vec![0, 1, 1, 1, 0, 1, 1, 1, 0]).unwrap();
    let network = Network::default();
    let message = |name: &str, settings: &str| match REGISTRY.make(name, settings) {
        Ok(scheduler) => scheduler.schedule(&demand, &network).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    let unknown = "unknown scheduler `sunflow`; there are: solstice, solstice-etalon, solstice-paper, eclipse, rotor, \
                   opera, fixed, bvn";
    assert_eq!(message("sunflow", ""), unknown);
    let twice = "days: [{length: 1ms, circuits: [[0, 1]]}, {length: 1ms, circuits: [[0, 1], [0, 2]]}]";
    assert_eq!(message("fixed", twice), "day 1: source 0 has circuits to 1 and 2: a port has one");
    let shared = "days: [{length: 1ms, circuits: [[0, 1], [2, 1]]}]";
    assert_eq!(message("fixed", shared), "day 0: destination 1 has circuits from 0 and 2: a port has one");
    let no_rack = "days: [{length: 1ms, circuits: [[0, 3]]}]";
    assert_eq!(message("fixed", no_rack), "day 0: circuit to rack 3: there are 3 racks, numbered from 0");
    let no_rack = "days: [{length: 1ms, circuits: [[7, 1]]}]";
    assert_eq!(
        message("fixed", no_rack),
        "day 0: circuit from rack 7 to rack 1: there are 3 racks, numbered from 0"
    );
    let none = "days: [{length: 0s, circuits: [[0, 1]]}]";
    assert_eq!(message("fixed", none), "day 0: a length of 0: must be above 0");
    let rings = message("fixed", "rings: [1, 3]");
    assert!(
        rings.ends_with("3: a multiple of the 3 racks, so each circuit would lead to its own rack"),
        "{rings}"
    );
    let rings = message("fixed", "rings: [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]");
    assert!(rings.contains("12 rings: days of 146.666us, after nights of 20us in a week of 2ms"), "{rings}");
    let itself = "days: [{length: 1ms, circuits: [[0, 1], [2, 2]]}]";
    assert_eq!(message("fixed", itself), "day 0: a circuit from rack 2 to itself: expected another rack");
    assert!(message("fixed", "days: []").ends_with("days: empty: expected at least one"));
    assert!(message("fixed", "rings: []").ends_with("rings: empty: expected at least one"));
    let both = message("fixed", "{rings: [1], days: [{length: 1ms, circuits: []}]}");
    assert!(both.ends_with("given together with `rings`: expected one of them"), "{both}");
    assert!(message("eclipse", "unit: 0s").contains("unit: 0s: expected a time above 0"));
    let unit = "solstice: night: 20us: must be a whole number of units of 15us (setting `unit`)";
    assert_eq!(message("solstice", "unit: 15us"), unit);
    assert!(message("rotor", "day: 0s").contains("day: 0s: expected a time above 0"));
    assert!(message("opera", "uplinks: 0").contains("uplinks: 0: expected 1 to 64"));
    assert!(message("solstice", "speed: 3").contains("speed"));
}

#[test]
fn a_network_too_slow_for_its_units_is_rejected() {
    let demand = DemandMatrix::new(2, vec![0, 1, 1, 0]).unwrap();
    let us = |time: u64| Nanos(time * 1000);
    let network = Network::new(Bandwidth(1_000_000), Bandwidth(1), us(20), us(2000), us(180)).unwrap();
    for name in ["solstice", "solstice-etalon", "eclipse", "bvn"] {
        let message = REGISTRY.make(name, "").unwrap().schedule(&demand, &network).unwrap_err().to_string();
        assert!(message.contains("a circuit of 1Mbps carries 0 bytes in a unit of 1us"), "{message}");
    }
    let quiet = Network::new(Bandwidth(1 << 30), Bandwidth(1), us(0), us(20), us(0)).unwrap();
    let message = REGISTRY.make("rotor", "").unwrap().schedule(&demand, &quiet).unwrap_err().to_string();
    let expected = "rotor: without nights and minimum days the setting `day` is required";
    assert_eq!(message, expected);
}

#[test]
fn a_schedule_that_breaks_a_guarantee_is_detected() {
    let network = Network::default();
    let day = |sources: Vec<Option<u32>>, us: u64| Day {
        matching: Matching::new(sources).unwrap(),
        length: Nanos(us * 1000),
    };
    let all = Guarantees { within_week: true, min_day: true, all_pairs: true };
    let message = |days: Vec<Day>, racks: usize, guarantees: Guarantees| {
        let schedule = Schedule::new(2, network.night(), days).unwrap();
        check(&schedule, racks, &network, guarantees).map_err(|invalid| invalid.to_string())
    };
    let both = || day(vec![Some(1), Some(0)], 500);
    assert_eq!(message(vec![both()], 2, all), Ok(()));
    let racks = "a schedule of 2 racks: must be 3, as many as the demand has";
    assert_eq!(message(vec![both()], 3, all), Err(racks.to_owned()));
    let short = "day 1: a length of 179us: must be at least 180us";
    assert_eq!(message(vec![both(), day(vec![None, None], 179)], 2, all), Err(short.to_owned()));
    let late = "day 3 ends at 2.08ms: must be within the week of 2ms";
    assert_eq!(message(vec![both(), both(), both(), both()], 2, all), Err(late.to_owned()));
    assert_eq!(message(vec![both(), both(), both(), both()], 2, Guarantees::default()), Ok(()));
    let alone = "no day has a circuit from rack 1 to rack 0: every pair must have one";
    assert_eq!(message(vec![day(vec![None, Some(0)], 500)], 2, all), Err(alone.to_owned()));
    let schedule = Schedule::new(2, Nanos(5), vec![both()]).unwrap();
    let night = Violation::Night { found: Nanos(5), expected: network.night() };
    assert_eq!(check(&schedule, 2, &network, all), Err(night));
}

/// A user-defined scheduler.
struct Everything;

impl Scheduler for Everything {
    fn name(&self) -> &str {
        "everything"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees { within_week: true, ..Guarantees::default() }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let racks = demand.racks() as u32;
        let matching = Matching::new((0..racks).map(|to| Some((to + 1) % racks)).collect())
            .map_err(|error| CircuitsError::Matching { day: 0, error })?;
        let length = network.week().since(network.night());
        Ok(Schedule::new(demand.racks(), network.night(), vec![Day { matching, length }])?)
    }
}

#[test]
fn a_user_defined_scheduler_works_like_a_registered_one() {
    let demand = DemandMatrix::new(2, vec![0, 10_000_000, 30_000_000, 0]).unwrap();
    let network = Network::default();
    let scheduler: Box<dyn Scheduler> = Box::new(Everything);
    let schedule = scheduler.schedule(&demand, &network).unwrap();
    check(&schedule, 2, &network, scheduler.guarantees()).unwrap();
    let result = evaluate(&schedule, &demand, &network).unwrap();
    assert_eq!((result.served, result.left.get(1, 0)), (29_800_000, 10_200_000));
    assert_eq!((result.packets_take, result.pairs), (Nanos(8_160_000), 2));
}
