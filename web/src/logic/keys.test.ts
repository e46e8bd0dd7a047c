import { expect, test } from 'vitest'
import { cellAfter } from './keys'

test('arrows, Home and End lead through a grid whose last row is short', () => {
  const go = (key: string, at: number, ctrlKey = false) => cellAfter({ key, ctrlKey }, at, 4, 10)
  expect([go('ArrowRight', 5), go('ArrowLeft', 5), go('ArrowDown', 5), go('ArrowUp', 5)]).toEqual([
    6, 4, 9, 1,
  ])
  expect([go('Home', 6), go('End', 5), go('End', 9), go('Home', 6, true), go('End', 1, true)]).toEqual([
    4, 7, 9, 0, 9,
  ])
  expect(go('Enter', 5)).toBeNull()
})
