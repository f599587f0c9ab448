// Arrows that pass by the nodes in their way, so that a -> c is not read as a -> b -> c.

export interface Box { x: number; y: number; width: number; height: number }
export type Point = [number, number];

const GAP = 5;
const TRIED = [0, 60, -60, 110, -110, 170, -170];
const STEPS = 24;

export function middle(box: Box): Point {
  return [box.x + box.width / 2, box.y + box.height / 2];
}

/** Where a curve between two points is bent to: `bow` away from the middle of the line, to its left. */
function bentTo([x1, y1]: Point, [x2, y2]: Point, bow: number): Point {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  return [(x1 + x2) / 2 + ((y2 - y1) / length) * bow, (y1 + y2) / 2 - ((x2 - x1) / length) * bow];
}

function meets(one: Point, bend: Point, two: Point, boxes: Box[]): boolean {
  for (let step = 0; step <= STEPS; step++) {
    const t = step / STEPS;
    const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
    const [x, y] = [a * one[0] + b * bend[0] + c * two[0], a * one[1] + b * bend[1] + c * two[1]];
    if (boxes.some((box) => x > box.x - GAP && x < box.x + box.width + GAP && y > box.y - GAP && y < box.y + box.height + GAP)) return true;
  }
  return false;
}

/** The point that an arrow between two boxes is bent to: the least bow that meets no other box, or none at all. */
export function bend(from: Box, to: Box, others: Box[]): Point {
  const [one, two] = [middle(from), middle(to)];
  for (const bow of TRIED) {
    const point = bentTo(one, two, bow);
    if (!meets(one, point, two, others)) return point;
  }
  return bentTo(one, two, 0);
}

/** Where the line from the middle of a box towards a point leaves it, however far off or near the point is. */
export function rim(box: Box, [x, y]: Point, gap: number): Point {
  const [cx, cy] = middle(box);
  const [dx, dy] = [x - cx, y - cy];
  if (!dx && !dy) return [cx, cy];
  const scale = Math.min((box.width / 2 + gap) / (Math.abs(dx) || 1e-9), (box.height / 2 + gap) / (Math.abs(dy) || 1e-9));
  return [cx + dx * scale, cy + dy * scale];
}

function holds(box: Box, [x, y]: Point): boolean {
  return x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
}

/** The path of an arrow from rim to rim: bent to a point, or straight where that lies in a wide box. */
export function arrow(from: Box, to: Box, by: Point): string {
  const straight = holds(from, by) || holds(to, by);
  return ["M", ...rim(from, by, 1), ...(straight ? ["L"] : ["Q", ...by]), ...rim(to, by, 4)].join(" ");
}
