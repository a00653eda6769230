/**
 * Where we are in content that is higher than a browser can make an element (Chromium: 33 million px, Firefox: 17).
 * The element has at most `HIGHEST`; a long jump of its scroll bar is scaled, a short one (wheel, keys, touch) goes as
 * far as the hand moved. The two drift apart by that; `settled` says where the bar belongs when the hand rests.
 */

export const HIGHEST = 8_000_000;

export class ScrollMap {
  /** Px of the content above the view. */
  top = 0;
  private last = 0;
  private content = 0;
  private view = 0;

  /** The content or the view changed; `top` stays where it is, as far as that exists. */
  resize(content: number, view: number): void {
    this.content = content;
    this.view = view;
    this.top = this.inside(this.top);
  }

  /** Of the element that is scrolled. */
  get height(): number {
    return Math.min(this.content, HIGHEST);
  }

  get furthest(): number {
    return Math.max(0, this.content - this.view);
  }

  /** 0 at the top, 1 at the end. */
  get fraction(): number {
    return this.furthest === 0 ? 0 : this.top / this.furthest;
  }

  /** The element was scrolled to here. */
  moved(scrollTop: number): void {
    const delta = scrollTop - this.last;
    this.last = scrollTop;
    if (delta === 0) return;
    const range = this.range;
    if (this.content <= HIGHEST) this.top = this.inside(scrollTop);
    else if (scrollTop <= 0) this.top = 0;
    else if (scrollTop >= range - 1) this.top = this.furthest;
    else if (Math.abs(delta) <= 2 * this.view) this.top = this.inside(this.top + delta);
    else this.top = (scrollTop / range) * this.furthest;
  }

  /** Goes to a px of the content; gives where the element is to be scrolled. */
  goTo(top: number): number {
    this.top = this.inside(top);
    return this.settled();
  }

  /** Where the element belongs; whoever scrolls it there says so with `placed`. */
  settled(): number {
    return this.content <= HIGHEST ? this.top : this.fraction * this.range;
  }

  /** We scrolled the element ourselves: the event that follows is no move. */
  placed(scrollTop: number): void {
    this.last = scrollTop;
  }

  private get range(): number {
    return Math.max(0, this.height - this.view);
  }

  private inside(top: number): number {
    return Math.max(0, Math.min(top, this.furthest));
  }
}
