/**
 * Uniform randomness: 64-bit words from the system's generator, and integers below any bound.
 *
 * Everything random in a report comes from here. The source of bytes is an argument, so that a test can write
 * them down beforehand; `systemRandom` takes them from crypto.getRandomValues, never from Math.random.
 *
 * Timing. How long a draw takes depends on what is drawn (rejections, rare ties, the size of a BigInt), never
 * on an answer; how long a fit takes depends on the answers. Nothing here is constant-time, BigInt arithmetic least of
 * all: whoever can time computations inside this browser may learn about both. From outside only the moment of sending
 * is seen, after the pauses of the voter.
 */

const BUFFER_BYTES = 4096;

/** Draws from a source of uniform bytes. */
export class Random {
  #fill;
  #buffer = new DataView(new ArrayBuffer(BUFFER_BYTES));
  #used = BUFFER_BYTES;

  /** @param {(bytes: Uint8Array<ArrayBuffer>) => void} fill overwrites the array with independent uniform bytes */
  constructor(fill) {
    this.#fill = fill;
  }

  /** @returns {bigint} 64 uniform bits */
  word() {
    if (this.#used === BUFFER_BYTES) {
      this.#fill(new Uint8Array(this.#buffer.buffer));
      this.#used = 0;
    }
    const word = this.#buffer.getBigUint64(this.#used, true);
    this.#used += 8;
    return word;
  }

  /**
   * An integer uniform on 0, ..., bound - 1, by rejection: the leading bits of some words are uniform below the next
   * power of two; what is not below the bound is thrown away. No value has a share of words that another has not.
   * @param {bigint} bound
   * @returns {bigint}
   */
  below(bound) {
    if (!(bound >= 1n)) throw new RangeError(`there is no integer from 0 to below ${bound}`);
    const bits = bitLength(bound - 1n);
    const words = (bits + 63n) / 64n;
    for (;;) {
      let value = 0n;
      for (let i = 0n; i < words; i++) value |= this.word() << (64n * i);
      value >>= 64n * words - bits;
      if (value < bound) return value;
    }
  }

  /** @param {number} count @returns {Uint8Array} uniform bytes, not from the buffer */
  bytes(count) {
    const bytes = new Uint8Array(count);
    this.#fill(bytes);
    return bytes;
  }
}

/** @returns {Random} the randomness of the operating system */
export function systemRandom() {
  return new Random((bytes) => crypto.getRandomValues(bytes));
}

/** @param {bigint} value not negative @returns {bigint} how many binary digits it takes to write it; 0 for 0 */
export function bitLength(value) {
  return value === 0n ? 0n : BigInt(value.toString(2).length);
}
