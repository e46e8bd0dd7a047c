import { expect, test } from 'vitest'
import type { History, Migration } from '../api/types'
import { effectOf, effectSentence, isOpen, movesSentence, ofLastHour, openFirst } from './moves'

const T = Date.UTC(2026, 2, 2, 9)
const move = (state: string, minutes = 0, link = 'r1:uplink'): Migration => ({
  id: `${state}-${minutes}-${link}`,
  time: new Date(T + minutes * 60_000).toISOString(),
  decision: '1',
  task: 't',
  job: null,
  from: 'r1h0',
  to: 'r2h0',
  link,
  state,
  reason: null,
})
/** 0.9 for five minutes before T, 0.7 in the next minute, then 0.5. */
const HISTORY: History = {
  from: new Date(T - 300_000).toISOString(),
  step_s: 30,
  series: [
    { link: 'r1:uplink', utilization: [...Array(10).fill(0.9), 0.7, 0.7, ...Array(8).fill(0.5), null] },
  ],
}

test('the load before is that of the last minute, and the load after leaves out the first minute', () => {
  expect(effectOf(move('done'), HISTORY)).toEqual({ before: 0.9, after: 0.5 })
  expect(effectOf(move('refused'), HISTORY)).toEqual({ before: 0.9, after: null })
  expect(effectOf(move('done', 20), HISTORY)).toEqual({ before: null, after: null })
  expect(effectOf(move('done'), undefined)).toEqual({ before: null, after: null })
})

test('open moves come first: those without an executor, then taken ones', () => {
  const states = ['done', 'taken', 'expired', 'advised', 'failed', 'taken', 'considered']
  const sorted = openFirst(states.map((state, at) => move(state, at)))
  expect(sorted.map(({ id }) => id.slice(0, -10))).toEqual([
    'advised-3',
    'taken-1',
    'taken-5',
    'done-0',
    'expired-2',
    'failed-4',
    'considered-6',
  ])
  expect(sorted.filter(isOpen)).toHaveLength(3)
})

test('one sentence sums up the hour', () => {
  const moves = [move('done'), move('done', 1), move('refused', 2), move('advised', 3), move('done', -70)]
  const hour = ofLastHour(moves, T + 300_000)
  expect(hour).toHaveLength(4)
  expect(movesSentence(hour)).toBe('4 moves in the last hour: 2 done, 1 waiting for an answer, 1 refused.')
  expect(movesSentence([])).toBe('No move was advised in the last hour.')
  expect(movesSentence([move('considered')])).toBe('1 move in the last hour: 1 considered in shadow mode.')
})

test('one sentence says whether the moves helped, with each link once', () => {
  const effect = (one: Migration) =>
    one.link === 'r1:uplink' ? { before: 0.9, after: 0.6 } : { before: 0.8, after: 0.9 }
  const hour = [move('done'), move('done', 1), move('done', 2, 'r2:uplink'), move('refused', 3, 'r3:uplink')]
  expect(effectSentence(hour, effect)).toBe(
    'The load fell on 1 of 2 links after moves, from 85\u00a0% to 75\u00a0% on average.',
  )
  expect(effectSentence([move('refused')], effect)).toBe('No task was moved, so there is no effect to show.')
  expect(effectSentence([move('done')], () => ({ before: 0.9, after: null }))).toMatch(/not known yet/)
})
