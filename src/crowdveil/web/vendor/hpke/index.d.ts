/** The part of hpke that the page uses: the types that its checks need. */

export class CipherSuite {
  constructor(kem: unknown, kdf: unknown, aead: unknown);
  DeserializePublicKey(publicKey: Uint8Array): Promise<unknown>;
  Seal(
    publicKey: unknown,
    plaintext: Uint8Array,
    options: { info: Uint8Array },
  ): Promise<{ encapsulatedSecret: Uint8Array; ciphertext: Uint8Array }>;
}
export const KEM_DHKEM_P256_HKDF_SHA256: unknown;
export const KDF_HKDF_SHA256: unknown;
export const AEAD_AES_128_GCM: unknown;
