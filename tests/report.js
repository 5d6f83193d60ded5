// What tests/report.sh asks a browser of a page: is it as wide as the window, is each text inside its figure, and over no other text?
const wrong = [];
const page = document.documentElement;
for (const details of document.querySelectorAll('details')) details.open = true;
if (page.scrollWidth > innerWidth) wrong.push(`${page.scrollWidth} pixels wide`);
for (const svg of document.querySelectorAll('svg')) {
    const whole = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim());
    const boxes = texts.map((t) => t.getBoundingClientRect());
    boxes.forEach((a, i) => {
        const inside = a.left > whole.left - 1 && a.right < whole.right + 1 && a.top > whole.top - 1 && a.bottom < whole.bottom + 1;
        if (!inside) wrong.push(`${texts[i].textContent} is outside`);
        boxes.slice(0, i).forEach((b, j) => {
            const over = Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
            if (over) wrong.push(`${texts[i].textContent} is over ${texts[j].textContent}`);
        });
    });
}
for (const part of document.querySelectorAll('.wide, summary, a')) {
    part.focus();
    if (document.activeElement !== part || getComputedStyle(part).outlineStyle === 'none') wrong.push(`${part.tagName} has no focus`);
}
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const [r] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
if (dark !== r < 128) wrong.push(`a background of ${r} where ${dark ? 'dark' : 'light'} is wanted`);
console.log(`CHECKED at ${innerWidth}, ${dark ? 'dark' : 'light'}: ${wrong.join('; ') || 'good'}`);
