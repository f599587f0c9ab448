"""How text stands out from its ground, asked of a page in a browser: WCAG 2 AA."""

CONTRAST = """() => {
  const linear = c => c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const numbers = s => [...s.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = numbers(getComputedStyle(e).backgroundColor);
      if (colour[3] > 0) return colour;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const [a, b] = [light(numbers(style.color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    found.push({text: e.textContent.trim().slice(0, 40), ratio, enough: large ? 3 : 4.5, size});
  }
  return found;
}"""
