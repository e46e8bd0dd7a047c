import { expect, test } from 'vitest'
import { absoluteTime, parameters, parseSearch, searchOf, searchText } from './search'

test('the box has fields with values; a word alone is a reference', () => {
  expect(parseSearch('rack:r3 client:hdfs-1 fallback')).toEqual({
    rack: 'r3',
    client: 'hdfs-1',
    fallback: 'true',
  })
  expect(parseSearch('blk_1073741825')).toEqual({ ref: 'blk_1073741825' })
  expect(parseSearch('job:"nightly crawl" since:2h')).toEqual({ job: 'nightly crawl', since: '2h' })
  // An unknown field is a part of the reference, such as the name of a pod.
  expect(parseSearch('pod:web-1')).toEqual({ ref: 'pod:web-1' })
  expect(parseSearch('  ')).toEqual({})
})

test('the box shows the search that it was given', () => {
  for (const text of ['rack:r3 client:hdfs-1', 'job:"nightly crawl"', 'fallback', 'ref:blk_1'])
    expect(searchText(parseSearch(text))).toBe(text)
  expect(searchText({ kind: 'tasks', rack: 'r3' })).toBe('rack:r3')
})

test('the address has known fields only', () => {
  expect(searchOf({ rack: 'r3', kind: 'tasks', colour: 'red', client: '' })).toEqual({
    rack: 'r3',
    kind: 'tasks',
  })
})

test('times count from now, and other texts stay for the service to check', () => {
  const now = Date.UTC(2026, 2, 2, 9)
  expect(absoluteTime('2h', now)).toBe('2026-03-02T07:00:00.000Z')
  expect(absoluteTime('30min', now)).toBe('2026-03-02T08:30:00.000Z')
  expect(absoluteTime('1.5d', now)).toBe('2026-02-28T21:00:00.000Z')
  expect(absoluteTime('2026-03-02T08:00:00+01:00', now)).toBe('2026-03-02T07:00:00.000Z')
  expect(absoluteTime('yesterday', now)).toBe('yesterday')
  expect(parameters({ since: '1h', rack: 'r3' }, now)).toEqual({
    rack: 'r3',
    since: '2026-03-02T08:00:00.000Z',
  })
})
