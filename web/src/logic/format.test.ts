import { describe, expect, test } from 'vitest'
import {
  age,
  clock,
  count,
  duration,
  quantity,
  moment,
  percentile,
  perSecond,
  rate,
  share,
  size,
} from './format'

const plain = (text: string) => text.replaceAll('\u00a0', ' ')

describe('numbers have a unit and three significant digits', () => {
  test.each([
    [0, '0 bps'],
    [999, '999 bps'],
    [1e9, '1 Gbps'],
    [9.4e9, '9.4 Gbps'],
    [999_600_000, '1 Gbps'],
    [12.34e6, '12.3 Mbps'],
    [4e11, '400 Gbps'],
    [1.6e12, '1.6 Tbps'],
  ])('a rate of %d', (bps, text) => expect(plain(rate(bps))).toBe(text))

  test.each([
    [0, '0 s'],
    [0.000_05, '50 us'],
    [0.0123, '12.3 ms'],
    [0.9999, '1 s'],
    [2.5, '2.5 s'],
    [119, '119 s'],
    [150, '3 min'],
    [7200, '2 h'],
    [90_000, '25 h'],
    [864_000, '10 d'],
  ])('a time of %d s', (seconds, text) => expect(plain(duration(seconds))).toBe(text))

  test.each([
    ['0B', '0 B'],
    ['256MiB', '256 MiB'],
    ['7.09TB', '7.09 TB'],
    ['6923893661KiB', '6.45 TiB'],
    ['1500000001B', '1.5 GB'],
    ['much', 'much'],
    [null, '–'],
  ])('a size of %s', (text, formatted) => expect(plain(size(text))).toBe(formatted))

  test.each([
    ['0B', '0 B'],
    ['256MiB', '268 MB'],
    ['6923893661KiB', '7.09 TB'],
    ['7.09TB', '7.09 TB'],
    [null, '–'],
  ])('a size of %s in units of a thousand', (text, formatted) =>
    expect(plain(size(text, true))).toBe(formatted),
  )

  test('ages are whole seconds and never negative', () => {
    expect(plain(age(3.4))).toBe('3 s')
    expect(plain(age(-0.2))).toBe('0 s')
  })

  test('shares, counts, rates a second, percentiles', () => {
    expect(plain(share(0.834))).toBe('83 %')
    expect(plain(share(0.0123, 1))).toBe('1.2 %')
    expect(count(12_500)).toBe('12,500')
    expect(plain(perSecond(12.5))).toBe('12.5 /s')
    expect(plain(perSecond(10_000))).toBe('10,000 /s')
    expect(plain(percentile(0.999))).toBe('99.9 %')
    expect(plain(percentile(99.9))).toBe('99.9 %')
    expect([quantity(1, 'rack'), quantity(1200, 'rack')]).toEqual(['1 rack', '1,200 racks'])
  })
})

test('unknown numbers of every kind are a dash', () => {
  for (const text of [rate, share, duration, age, perSecond, count, clock])
    expect([text(null), text(undefined), text(NaN), text(Infinity)]).toEqual(['–', '–', '–', '–'])
})

test('times are parsed with their zone', () => {
  expect(moment('2026-03-02T09:00:00+01:00')).toBe(Date.UTC(2026, 2, 2, 8))
  expect(moment(null)).toBeNull()
  expect(moment('yesterday')).toBeNull()
})
