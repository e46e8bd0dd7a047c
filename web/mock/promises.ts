import type { Enforcement, EnforcementPlace, Enforcer, Workload } from '../src/api/types'

/** Version of the promises, and of the last change of each. */
const VERSION = 41
const WINDOWS = [300, 1800, 3600, 21_600, 259_200]

/** Requests that each workload has had since the mock began. */
const REQUESTS = 120_000
/** Share of late requests that the SLOs permit, about. */
const PERMITTED = 0.001

/** Burn rate and alerts of the workloads that use up their SLO. */
const BURNS: Record<string, [number, Enforcement['alerts']]> = {
  'mail-store': [16.2, ['fast']],
  'search-index': [0.8, []],
}
/** Faults at places of workloads: the stage, its state and the difference. */
const FAULTS: Record<string, [string, EnforcementPlace['state'], string | null]> = {
  'mail-store': ['network-in', 'drifted', 'rate 1 Mbit/s in place of 250 Mbit/s'],
  'home-dirs': ['storage', 'absent', null],
}

/** Host of the enforcers of a client or of a server: that of the first or last link of the path. */
const hostOf = (link: string | undefined) => link?.split(':')[0] ?? ''

/** Places of a workload, with the enforcers that this mock has. */
function places(name: string, path: string[]): EnforcementPlace[] {
  const [client, server] = [hostOf(path[0]), hostOf(path.at(-1))]
  const all = [
    ['net', client, 'network-in'],
    ['nfs', server, 'storage'],
    ['net', server, 'network-out'],
  ] as const
  return all.map(([kind, host, stage]) => {
    const [place, fault] = [{ kind, host, stage, enforcer: `${kind}@${host}` }, FAULTS[name]]
    if (fault?.[0] !== stage) return { ...place, state: 'applied', detail: null }
    const [, state, detail] = fault
    return { ...place, state, detail, ...(state === 'absent' ? { enforcer: null } : {}) }
  })
}

/** Version and enforcement of a workload, whose requests count since a time. */
export function enforcement(name: string, path: string[], seen_s: number | null, since: string) {
  const all = places(name, path)
  const [rate, alerts] = BURNS[name] ?? [seen_s === null ? null : 0, []]
  const applied = all.every(({ state }) => state === 'applied')
  const state = all.some((one) => one.state === 'drifted')
    ? 'unenforced'
    : !applied
      ? 'partial'
      : seen_s === null
        ? 'enforced'
        : 'seen'
  const burn = WINDOWS.map((window_s) => ({ window_s, rate }))
  const total = {
    requests: rate === null ? 0 : REQUESTS,
    late: Math.round((rate ?? 0) * PERMITTED * REQUESTS),
  }
  const [counted_since, seen_by] = [since, seen_s === null ? null : `nfs@${hostOf(path.at(-1))}`]
  return {
    version: VERSION,
    enforcement: { state, places: all, total, counted_since, seen_by, burn, alerts } satisfies Enforcement,
  }
}

/** Enforcers of the places of workloads, by name. */
export function enforcers(workloads: Workload[], since: string): Enforcer[] {
  const found = new Map<string, Enforcer>()
  for (const { name, enforcement } of workloads)
    for (const { kind, host, state, enforcer, detail } of enforcement?.places ?? []) {
      if (enforcer === null) continue
      const known: Enforcer = found.get(enforcer) ?? {
        enforcer,
        kind,
        host,
        state: 'live',
        since,
        version: VERSION,
        current: VERSION,
        workloads: [],
      }
      const applied = state === 'drifted' ? 'drifted' : 'applied'
      found.set(enforcer, {
        ...known,
        workloads: [...known.workloads, { workload: name, state: applied, detail }],
      })
    }
  return [...found.values()].sort((a, b) => (a.enforcer < b.enforcer ? -1 : 1))
}
