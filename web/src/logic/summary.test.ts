import { expect, test } from 'vitest'
import type { Summary } from '../api/types'
import { saved, uncompared, verdict } from './summary'

const summary = (with_leeward: number, without_leeward: number, compared = 100): Summary => ({
  from: '2026-03-01T09:00:00Z',
  to: '2026-03-02T09:00:00Z',
  step_s: 600,
  decisions: [
    {
      kind: 'replicas',
      decided: 110,
      by_default: 0,
      refused: 0,
      blind: 0,
      fallback: 0,
      better: 20,
      same: 75,
      worse: 5,
      unknown: 0,
      one_refused: 0,
    },
  ],
  moves: { considered: 0, advised: 0, done: 0, refused: 0 },
  hot_link_hours: { seen: 3, with_leeward, without_leeward, observed: 480, compared, uncompared: 10 },
  steps: [],
  mattered: [],
})

test('the verdict compares both, and says when nothing was compared', () => {
  expect(saved(summary(2, 8))).toBe(0.75)
  expect(saved(summary(0, 0))).toBeNull()
  expect(verdict(summary(2, 8))).toBe(
    'With Leeward’s choices, links are hot for 2\u00a0h instead of 8\u00a0h with the default policy’s: 75\u00a0% less. Of 100 compared decisions, 20 were better and 5 worse.',
  )
  expect(verdict(summary(8, 4))).toMatch(/100\u00a0% more\. /)
  expect(verdict(summary(0, 0))).toMatch(/^No link was or would have been hot\./)
  expect(verdict(summary(0, 0, 0))).toMatch(/^No decision was compared/)
  expect(uncompared(summary(2, 8))).toBe('10 of 110 decisions were not compared.')
})
