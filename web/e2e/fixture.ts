import { fileURLToPath } from 'node:url'
import { AxeBuilder } from '@axe-core/playwright'
import { test as base, expect, type Page } from '@playwright/test'
import { Mock, type MockOptions } from '../mock/server.ts'

export { expect }

const DIST = fileURLToPath(new URL('../dist', import.meta.url))

interface Careful {
  /** Where pages of this test come from. They end with it, and a page may ask nobody else. */
  served: { url: string; close: () => void }[]
}

/** Tests that fail if a page says that something went wrong, or asks somebody else than where it came from. */
export const careful = base.extend<Careful>({
  served: async ({ page }, use) => {
    const served: Careful['served'] = []
    const wrong: string[] = []
    page.on('console', (message) => {
      const expected = /Failed to load resource|ERR_EMPTY_RESPONSE|ERR_CONNECTION|ERR_INCOMPLETE/
      if (message.type() === 'error' && !expected.test(message.text())) wrong.push(message.text())
    })
    page.on('pageerror', (error) => wrong.push(String(error)))
    page.on('request', (request) => {
      const here = served.some(({ url }) => request.url().startsWith(url))
      if (!here && !request.url().startsWith('data:')) wrong.push(`request to ${request.url()}`)
    })
    await use(served)
    served.forEach((server) => server.close())
    expect(wrong, 'nothing went wrong, and nothing was asked of anyone else').toEqual([])
  },
})

interface Fixtures {
  /** Starts a service of a simulated cluster and opens a page of it. */
  open: (path?: string, options?: MockOptions) => Promise<Mock>
}

export const test = careful.extend<Fixtures>({
  open: async ({ page, served }, use) => {
    await use(async (path = '', options = {}) => {
      const mock = new Mock(options)
      const server = await mock.serve(DIST)
      served.push(server)
      await page.goto(server.url + (path ? `#/${path}` : ''))
      return mock
    })
  },
})
/** Whether a page is right for those who do not see it, by what a program can tell. */
export async function accessible(page: Page): Promise<void> {
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  const { violations } = await new AxeBuilder({ page }).withTags(tags).analyze()
  expect(
    violations.map(({ id, nodes }) => [
      id,
      nodes.map((node) => [node.html.slice(0, 160), node.failureSummary]),
    ]),
  ).toEqual([])
}

/** In light and dark. */
export const BOTH = { tag: '@both' }

/** Once the first data are there. */
export async function live(page: Page): Promise<void> {
  await expect(page.getByRole('banner').getByRole('status')).toHaveText(/live/)
}

/** Lets a number of intervals pass, each seen by the page before the next. */
export async function pass(mock: Mock, page: Page, ticks: number): Promise<void> {
  for (let at = 0; at < ticks; at++) {
    mock.tick()
    await page.waitForTimeout(30)
  }
}

/** What the page's own thread computed, layout and painting included, whatever else the machine does; and what it holds. */
export async function measuring(page: Page) {
  const browser = await page.context().newCDPSession(page)
  await browser.send('Performance.enable', { timeDomain: 'threadTicks' })
  const metric = async (wanted: string) => {
    const { metrics } = await browser.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === wanted)?.value ?? NaN
  }
  return {
    busy_ms: async () => 1000 * (await metric('TaskDuration')),
    heap_mib: async () => {
      await browser.send('HeapProfiler.collectGarbage')
      return (await metric('JSHeapUsedSize')) / 2 ** 20
    },
  }
}
