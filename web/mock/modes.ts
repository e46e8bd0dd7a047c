import type { ModeKind, Modes, ModesInForce } from '../src/api/types'

const KINDS: ModeKind[] = ['replicas', 'tasks', 'moves', 'workload', 'volumes']

const all = (mode: string): Modes => ({
  replicas: mode,
  tasks: mode,
  moves: mode,
  workload: mode,
  volumes: mode,
})

/** Time from which Leeward decides; shadow mode came before. */
export const ON_SINCE = '2026-03-16T08:12:00Z'

/** Modes of the simulated service. */
export class MockModes {
  value: ModesInForce = {
    in_force: all('on'),
    set: all('on'),
    settings: all('shadow'),
    changed: ON_SINCE,
    by: 'ada',
    reason: 'few were worse in a week of canaries',
    off_file: '/run/leeward/off',
    off_file_exists: false,
  }

  change({ reason, ...modes }: Record<string, string>, time: string): void {
    const change = (before: Modes): Modes => ({
      ...before,
      ...(modes['all'] ? all(modes['all']) : {}),
      ...Object.fromEntries(KINDS.filter((kind) => modes[kind]).map((kind) => [kind, modes[kind]])),
    })
    const set = change(this.value.set)
    this.value = { ...this.value, in_force: set, set, changed: time, by: 'anonymous', reason: reason ?? null }
  }
}
