import type { Demo } from '../api/types'
import { duration } from './format'

/** Title and colour of each arm, as in all pictures of the project. */
export const ARMS: Record<string, { title: string; colour: string }> = {
  leeward: { title: 'Leeward', colour: '--rust' },
  default: { title: 'Default', colour: '--grey' },
}

/** Mean shares of hot racks over the steps that are known for both arms. */
export function means(demo: Demo): { leeward: number; other: number; seconds: number } | null {
  const hotShares = (name: string) => demo.history.arms.find((arm) => arm.name === name)?.hot_share ?? []
  const [leeward, other] = [hotShares('leeward'), hotShares('default')]
  let [sum, sumOther, n] = [0, 0, 0]
  for (let at = 0; at < Math.min(leeward.length, other.length); at++) {
    const [own, theirs] = [leeward[at], other[at]]
    if (own === null || own === undefined || theirs === null || theirs === undefined) continue
    sum += own
    sumOther += theirs
    n++
  }
  return n ? { leeward: sum / n, other: sumOther / n, seconds: n * demo.history.step_s } : null
}

/** Summarizes the comparison in one sentence, for either outcome. */
export function verdict(demo: Demo): string {
  if (demo.arms.length === 1)
    return 'One policy has run so far. The other one follows with the same arrivals.'
  const mean = means(demo)
  if (!mean || (mean.leeward === 0 && mean.other === 0)) return 'No rack was hot under either policy yet.'
  const over = `over the last ${duration(mean.seconds)}`
  if (mean.leeward === 0) return `No rack was hot under Leeward ${over}.`
  const factor = mean.other / mean.leeward
  if (factor >= 1.1) return `${Number(factor.toPrecision(2))} times fewer hot racks under Leeward, ${over}.`
  if (factor > 1 / 1.1) return `Equally many hot racks under both policies, ${over}.`
  return `${Number((1 / factor).toPrecision(2))} times more hot racks under Leeward, ${over}.`
}
