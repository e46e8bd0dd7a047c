import { expect, test } from 'vitest'
import type { Demo } from '../api/types'
import { means, verdict } from './demo'

const demoOf = (leeward: (number | null)[], other: (number | null)[]): Demo => ({
  time: '2026-03-02T09:00:00Z',
  speed: 60,
  arms: [],
  history: {
    step_s: 10,
    arms: [
      { name: 'default', hot_share: other },
      { name: 'leeward', hot_share: leeward },
    ],
  },
})
const sentence = (...both: [(number | null)[], (number | null)[]]) =>
  verdict(demoOf(...both)).replaceAll('\u00a0', ' ')

test('means use only the steps that both arms have', () => {
  expect(means(demoOf([0.1, null, 0.3], [0.4, 0.9, 0.6, 1]))).toEqual({
    leeward: 0.2,
    other: 0.5,
    seconds: 20,
  })
  expect(means(demoOf([], [0.1]))).toBeNull()
})

test('the verdict covers wins, ties, losses and missing data', () => {
  expect(sentence([0.1, 0.1], [0.4, 0.6])).toBe('5 times fewer hot racks under Leeward, over the last 20 s.')
  expect(sentence([0.2], [0.2])).toBe('Equally many hot racks under both policies, over the last 10 s.')
  expect(sentence([0.6], [0.2])).toBe('3 times more hot racks under Leeward, over the last 10 s.')
  expect(sentence([0], [0.2])).toBe('No rack was hot under Leeward over the last 10 s.')
  expect(sentence([0], [0])).toBe('No rack was hot under either policy yet.')
  expect(sentence([], [])).toBe('No rack was hot under either policy yet.')
})

test('with one policy there is no verdict', () => {
  const arm = { name: 'default', policy: 'kube-scheduler', hot_racks: 3, hot_share: 0.3, racks: [] }
  expect(verdict({ ...demoOf([], [0.3]), arms: [arm] })).toBe(
    'One policy has run so far. The other one follows with the same arrivals.',
  )
})
