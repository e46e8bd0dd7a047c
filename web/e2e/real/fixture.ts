import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from '@playwright/test'
import { serve } from '../../mock/files.ts'
import { careful, expect } from '../fixture.ts'
import { Controller } from './controller.ts'

export { accessible, live } from '../fixture.ts'
export { COMMAND, Controller, even } from './controller.ts'
export { expect }

export const DIST = fileURLToPath(new URL('../../dist', import.meta.url))

interface Fixtures {
  /** Starts a service with a cluster of examples/clusters; it ends with the test. */
  start: (cluster: string, options?: string[], token?: string) => Promise<Controller>
  /** Opens the page that was built on a service. */
  visit: (controller: Controller, path?: string) => Promise<void>
}

/** Tests of the page on a service that runs. That the service itself serves this page is a test of its own. */
export const test = careful.extend<Fixtures>({
  start: async ({}, use, info) => {
    const running: Controller[] = []
    mkdirSync(info.outputDir, { recursive: true })
    await use(async (cluster, options = [], token) => {
      const store = options.includes('--store') ? [] : ['--store', 'memory']
      const controller = await Controller.start(cluster, [...store, ...options], info.outputDir, token)
      running.push(controller)
      return controller
    })
    await Promise.all(running.map((controller) => controller.stop()))
  },
  visit: async ({ page, served }, use) => {
    await use(async (controller, path = '') => {
      const server = await serve(DIST, (request, response) => controller.answer(request, response))
      served.push(server)
      await page.goto(server.url + (path ? `#/${path}` : ''))
    })
  },
})

/** Keeps telemetry coming until the test ends, as agents do. */
export async function feed(
  page: Page,
  controller: Controller,
  loads: Record<string, number>,
): Promise<() => void> {
  await controller.report(loads)
  const timer = setInterval(() => void controller.report(loads).catch(() => undefined), 500)
  const end = () => clearInterval(timer)
  page.once('close', end)
  return end
}
