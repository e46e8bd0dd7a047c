import type { History, Migration } from '../api/types'
import { moment, quantity, share } from './format'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Time spans around the advice over which the load of the link is averaged, in milliseconds. */
const BEFORE: [number, number] = [-MINUTE, 0]
const AFTER: [number, number] = [MINUTE, 6 * MINUTE]

/** Load of a link before and after a move; null where it is not known. */
export interface Effect {
  before: number | null
  after: number | null
}

/** Load of the link of a move before the advice, and after it if the task was moved. */
export function effectOf(move: Migration, history: History | undefined): Effect {
  const at = moment(move.time)
  if (at === null || !history) return { before: null, after: null }
  const after = move.state === 'done' ? meanOver(history, at + AFTER[0], at + AFTER[1]) : null
  return { before: meanOver(history, at + BEFORE[0], at + BEFORE[1]), after }
}

/** Mean of the known steps of a history that overlap a time span. */
function meanOver({ from, step_s, series }: History, begin: number, end: number): number | null {
  const first = moment(from)
  if (first === null) return null
  const step = step_s * 1000
  const overlaps = (_: unknown, at: number) => first + at * step < end && first + (at + 1) * step > begin
  const values = (series[0]?.utilization ?? []).filter(overlaps).filter((value) => value !== null)
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null
}

/** Moves of the last hour. */
export function ofLastHour(moves: Migration[], now: number): Migration[] {
  return moves.filter(({ time }) => (moment(time) ?? 0) > now - HOUR)
}

const STATES: [string, string][] = [
  ['done', 'done'],
  ['advised', 'waiting for an answer'],
  ['taken', 'being carried out'],
  ['refused', 'refused'],
  ['failed', 'failed'],
  ['expired', 'without an answer'],
  ['considered', 'considered in shadow mode'],
]

/** The moves of the last hour in one sentence: `12 moves in the last hour: 8 done, 4 refused.` */
export function movesSentence(hour: Migration[]): string {
  if (hour.length === 0) return 'No move was advised in the last hour.'
  const counts = STATES.map(([state, words]): [number, string] => [
    hour.filter((one) => one.state === state).length,
    words,
  ])
  const parts = counts.filter(([count]) => count > 0).map(([count, words]) => `${count} ${words}`)
  return `${quantity(hour.length, 'move')} in the last hour: ${parts.join(', ')}.`
}

/** Effect of the moves, in one sentence. */
export function effectSentence(hour: Migration[], effect: (move: Migration) => Effect): string {
  const done = hour.filter(({ state }) => state === 'done')
  if (done.length === 0) return 'No task was moved, so there is no effect to show.'
  const known = new Map<string, { before: number; after: number }>()
  for (const move of done) {
    const { before, after } = effect(move)
    if (before !== null && after !== null) known.set(move.link, { before, after })
  }
  if (known.size === 0) return 'The load after the moves is not known yet: it is measured for six minutes.'
  const links = [...known.values()]
  const mean = (pick: (one: { before: number; after: number }) => number) =>
    links.reduce((sum, one) => sum + pick(one), 0) / links.length
  const fell = links.filter(({ before, after }) => after < before).length
  const [before, after] = [mean((one) => one.before), mean((one) => one.after)]
  if (fell === 0)
    return `The load did not fall on ${quantity(links.length, 'link')} after moves: from ${share(before)} to ${share(after)} on average.`
  return `The load fell on ${fell} of ${quantity(links.length, 'link')} after moves, from ${share(before)} to ${share(after)} on average.`
}
