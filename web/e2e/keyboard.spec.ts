import type { Page } from '@playwright/test'
import { contrast, type Rgb } from '../src/logic/colour.ts'
import { BOTH, expect, live, pass, test } from './fixture.ts'

/** What Tab comes to and marks by no line, one that is cut off at a side, or one like what is behind it. */
async function badlyMarked(page: Page): Promise<string[]> {
  const bad: string[] = []
  for (let at = 0; at < 25; at++) {
    await page.keyboard.press('Tab')
    const mark = await page.evaluate(() => {
      const focused = document.activeElement as HTMLElement
      if (focused === document.body) return null
      const one = focused.closest('fieldset') ?? focused
      const { outlineStyle, outlineWidth, outlineOffset, outlineColor } = getComputedStyle(one)
      const far = parseFloat(outlineWidth) + parseFloat(outlineOffset)
      const { left, right } = one.getBoundingClientRect()
      const around: Element[] = []
      for (let outer = one.parentElement; outer; outer = outer.parentElement) around.push(outer)
      const cuts = (outer: Element) => {
        const { overflowX, contain } = getComputedStyle(outer)
        const box = outer.getBoundingClientRect()
        const cutting = overflowX !== 'visible' || /strict|content|paint/.test(contain)
        return cutting && (left - far < box.left || right + far > box.right)
      }
      const context = new OffscreenCanvas(1, 1).getContext('2d') as OffscreenCanvasRenderingContext2D
      const rgba = (colour: string) => {
        context.clearRect(0, 0, 1, 1)
        context.fillStyle = colour
        context.fillRect(0, 0, 1, 1)
        return [...context.getImageData(0, 0, 1, 1).data]
      }
      const grounds = around.map((outer) => rgba(getComputedStyle(outer).backgroundColor))
      return {
        name: one.outerHTML.slice(0, 100),
        whole: outlineStyle === 'solid' && outlineWidth === '3px' && !around.some(cuts),
        line: rgba(outlineColor),
        ground: grounds.find(([, , , alpha]) => alpha === 255) ?? [],
      }
    })
    if (!mark) break
    const [line, ground] = [mark.line.slice(0, 3), mark.ground.slice(0, 3)] as unknown as [Rgb, Rgb]
    if (!mark.whole || !(contrast(line, ground) >= 3)) bad.push(mark.name)
  }
  return bad
}

test('from the first key to a rack and on, without a pointer', async ({ page, open }) => {
  const mock = await open('racks')
  await live(page)
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to the page' })).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(page.locator('main')).toBeFocused()
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('Order')).toBeFocused()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await expect(page.locator('[data-rack=r0]')).toBeFocused()
  // One tile is in the order of Tab, whichever was focused last.
  expect(await page.locator('[data-rack][tabindex="0"]').count()).toBe(1)
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  await expect(page.locator('[data-rack=r2]')).toBeFocused()
  const outline = await page.locator('[data-rack=r2]').evaluate((one) => getComputedStyle(one).outlineWidth)
  expect(outline).toBe('3px')
  await page.keyboard.press('ArrowDown')
  const below = await page.evaluate(() => document.activeElement?.getAttribute('data-rack'))
  expect(Number(below?.slice(1))).toBeGreaterThan(10)
  await page.keyboard.press('Control+Home')
  await expect(page.locator('[data-rack=r0]')).toBeFocused()
  await page.keyboard.press('ArrowLeft')
  await expect(page.locator('[data-rack=r0]')).toBeFocused()
  await page.keyboard.press('ArrowRight')
  // A tick does not take the focus away.
  await pass(mock, page, 2)
  await expect(page.locator('[data-rack=r1]')).toBeFocused()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Shift+Tab')
  await expect(page.locator('[data-rack=r1]')).toBeFocused()
  await page.keyboard.press('Enter')
  const heading = page.getByRole('heading', { level: 1 })
  await expect(heading).toHaveText('r1')
  await expect(heading).toBeFocused()
  await page.getByRole('tab', { name: 'Hosts' }).focus()
  await page.keyboard.press('ArrowRight')
  await expect(page.getByRole('tab', { name: 'Tasks' })).toBeFocused()
  await expect(page.getByRole('tab', { name: 'Tasks' })).toHaveAttribute('aria-selected', 'true')
})

test('the map over time: arrow keys, a held moment, and the rack', async ({ page, open }) => {
  await open('racks')
  await live(page)
  await expect(page.getByLabel('Moment')).toBeEnabled()
  const cell = page.getByRole('grid', { name: 'Utilization of racks over time' }).getByRole('gridcell')
  await expect(cell).toHaveCount(1)
  await cell.focus()
  await expect(cell).toHaveAttribute('aria-label', /^r0, .*: uplink/)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowRight')
  await expect(cell).toBeFocused()
  await expect(cell).toHaveAttribute('aria-label', /^r1, .*: downlink/)
  await page.keyboard.press('End')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Space')
  await expect(page.getByRole('heading', { name: /not now/ })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('heading', { name: 'Now' })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('r1')
})

test(
  'the mark of focus is whole, and differs from what is behind it, wherever Tab comes to',
  BOTH,
  async ({ page, open }) => {
    await open('racks')
    await live(page)
    for (const path of ['racks', 'racks/r12', 'decisions/d-718-1', 'hotspots', 'workloads']) {
      await page.evaluate((path) => (location.hash = `#/${path}`), path)
      await expect(page.getByText(/^(Reading|Asking)/)).toHaveCount(0)
      expect(await badlyMarked(page), path).toEqual([])
    }
    await page.evaluate(() => (location.hash = '#/racks/r12'))
    await page.getByRole('tab', { name: 'Tasks' }).click()
    expect(await badlyMarked(page)).toEqual([])
    await open('racks', { token: 'sesame' })
    await page.getByRole('button', { name: 'Close' }).click()
    await expect(page.getByRole('button', { name: 'Give a token' })).toBeVisible()
    expect(await badlyMarked(page)).toEqual([])
  },
)

test('colours are chosen by a button, and kept', async ({ page, open }) => {
  await open('racks')
  await live(page)
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  const button = page.getByRole('button', { name: /^Colours/ })
  await button.press('Enter')
  expect(await background()).toBe('rgb(250, 248, 245)')
  await button.press('Enter')
  expect(await background()).toBe('rgb(21, 23, 27)')
  await page.reload()
  await live(page)
  expect(await background()).toBe('rgb(21, 23, 27)')
  await expect(button).toHaveAccessibleName('Colours: dark. Change.')
})

test('who wants less motion gets none', async ({ page, open }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await open('racks')
  await live(page)
  const transition = await page
    .locator('.half')
    .first()
    .evaluate((one) => getComputedStyle(one).transitionProperty)
  expect(transition).toBe('none')
})
