import { expect, test } from 'vitest'
import type {
  Decision,
  HotLink,
  Migration,
  Page,
  RackDetail,
  Status,
  Summary,
  Workload,
} from '../src/api/types'
import { Mock } from './server.ts'

// The mock is what readers of the book see: its pages must not contradict each other.

/** The response of a mock to a GET request. */
function get<T>(mock: Mock, path: string): T {
  let body = ''
  const request = { url: `/v1/${path}`, method: 'GET', headers: {} }
  const response = { writeHead: () => ({ end: (text: string) => void (body = text) }) }
  mock.answer(request as never, response as never)
  return JSON.parse(body) as T
}

const mock = new Mock()
const time = () => Date.parse(mock.world.time(mock.step))

/** Calls `check` at the start of the mock and after every fifth of some ticks: longer than an advised move waits. */
function overTime(check: () => void) {
  for (let tick = 0; tick < 45; tick++, mock.tick()) if (tick % 5 === 0) check()
}

test('a hot link has no reason against moves while one is advised, for five minutes at most, and both tables have the same tasks', () => {
  let compared = 0
  overTime(() => {
    const moves = get<Page<Migration>>(mock, 'migrations').items
    const advised = moves.filter(({ state }) => state === 'advised')
    for (const one of advised) expect(time() - Date.parse(one.time)).toBeLessThan(300_000)
    for (const hot of get<Page<HotLink>>(mock, 'hotspots').items) {
      if (advised.some(({ link }) => link === hot.link)) expect(hot.no_move).toBeNull()
      for (const { task, host, job, decision } of hot.heaviest)
        for (const move of moves.filter((one) => one.task === task)) {
          expect(move).toMatchObject({ from: host, job, decision })
          expect(move.state).not.toBe('done')
          compared++
        }
    }
  })
  expect(compared).toBeGreaterThan(5)
}, 30_000)

test('the heaviest tasks of a hot link are tasks of its rack with the same rate', () => {
  for (const { link, heaviest } of get<Page<HotLink>>(mock, 'hotspots').items) {
    const { tasks } = get<RackDetail>(mock, `racks/${link.split(':')[0]}`)
    for (const { task, host, rate_bps } of heaviest) {
      const own = tasks.find((one) => one.task === task)
      expect(own?.host).toBe(host)
      const rate = link.endsWith('uplink') ? own?.egress_bps : own?.ingress_bps
      expect(Math.abs((rate ?? 0) - (rate_bps ?? 0))).toBeLessThanOrEqual(1)
    }
  }
})

test('the first copy of a block is on the host of its writer, and each volume has its own name', () => {
  const { items } = get<Page<Decision>>(mock, 'decisions?limit=1000')
  const replicas = items.filter(({ kind }) => kind === 'replicas')
  expect(replicas.length).toBeGreaterThan(100)
  for (const { request, hosts } of replicas) {
    expect(hosts[0]).toBe((request as { writer: string }).writer)
    expect(new Set(hosts).size).toBe(3)
  }
  const volumes = items.flatMap(({ request }) => (request as { volume?: string }).volume ?? [])
  expect(volumes.length).toBeGreaterThan(10)
  expect(new Set(volumes).size).toBe(volumes.length)
})

test('the volume of a workload is that of its decision', () => {
  for (const { decision, volume } of get<Page<Workload>>(mock, 'workloads').items)
    expect(get<Decision>(mock, `decisions/${decision}`)).toMatchObject({
      kind: 'volumes',
      request: { volume },
    })
})

test('the status counts the silent racks and the decisions that the other pages show', () => {
  const { agents, comparisons, decided, slow_links } = get<Status>(mock, 'status')
  const unseen = mock.world.all(mock.step).filter(({ up }) => !up.seen)
  expect(new Set(agents.silent_hosts.map((host) => host.replace(/h\d+$/, '')))).toEqual(
    new Set(unseen.map(({ rack }) => rack)),
  )
  expect(agents.silent).toBe(agents.silent_hosts.length)
  expect(agents.reporting + agents.silent + agents.absent).toBe(mock.world.racks * mock.world.hosts)
  const all = comparisons.map((one) => one.better + one.same + one.worse + one.unknown + one.refused)
  expect(all.reduce((sum, one) => sum + one, 0)).toBe(decided)
  const slow = mock.world
    .all(mock.step)
    .flatMap(({ rack }) =>
      get<RackDetail>(mock, `racks/${rack}`).hosts.flatMap(({ egress, ingress }) =>
        [egress, ingress].filter((link) => link?.seen && link.full_bps !== null),
      ),
    )
  expect(slow_links).toBe(slow.length)
})

test('links are seen hot as long as with Leeward while its modes are on, and guarantees have no effect', () => {
  const since = new Date(time() - 86_400_000).toISOString()
  const { hot_link_hours, decisions } = get<Summary>(mock, `summary?since=${since}`)
  const { seen, with_leeward, without_leeward } = hot_link_hours
  expect(Math.abs(seen / with_leeward - 1)).toBeLessThan(0.05)
  expect(without_leeward).toBeGreaterThan(1.5 * with_leeward)
  const volumes = decisions.find(({ kind }) => kind === 'volumes')
  expect(volumes).toMatchObject({ better: 0, same: 0, worse: 0, unknown: volumes?.decided })
})
