import { expect, test } from 'vitest'
import { EventReader } from './sse'
import { backOff } from './stream'

const STREAM =
  ': hello\r\n\r\nid: 7\r\nevent: racks\r\ndata: {"items":\r\ndata: []}\r\n\r\nretry: 900\n\nid:8\ndata:é\n\nevent: lone\n\ndata: half'

test('the reader returns the same events for every split of the stream', () => {
  const whole = new EventReader().push(STREAM)
  expect(whole).toEqual([
    { name: 'racks', data: '{"items":\n[]}', id: '7' },
    { name: 'message', data: 'é', id: '8' },
  ])
  for (let cut = 0; cut <= STREAM.length; cut++) {
    const reader = new EventReader()
    expect([...reader.push(STREAM.slice(0, cut)), ...reader.push(STREAM.slice(cut))]).toEqual(whole)
    expect(reader.retry_ms).toBe(900)
  }
  const letters = new EventReader()
  expect([...STREAM].flatMap((letter) => letters.push(letter))).toEqual(whole)
})

test('delays double up to a limit, with a jitter of 25 %', () => {
  expect([0, 1, 2, 3].map((attempt) => backOff(attempt, 0.5))).toEqual([500, 1000, 2000, 4000])
  expect(backOff(1000, 1)).toBe(15_000 * 1.25)
  expect(backOff(0, 0)).toBe(375)
})
