// Package seal encrypts packed backups to the recipients that a user names, and opens them with an identity, in the
// format of age (age-encryption.org/v1).
//
// Recipients are public keys: age1… (X25519), or age1pq1… (hybrid, safe from quantum computers; the two kinds do not
// mix). A recipient can only encrypt; only the identity that belongs to it (AGE-SECRET-KEY-…) can decrypt. So the
// machine that makes backups needs no secret.
//
// A sealed backup reveals its size and its number of recipients, and nothing else. It does not prove who sealed it,
// because anyone can encrypt to a public key.
package seal
