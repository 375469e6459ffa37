// Package seal encrypts packed backups to the recipients that a user names, and opens them with an identity, in the
// format of age (age-encryption.org/v1).
//
// Recipients are public keys: age1… (X25519), or age1pq1… (hybrid, safe from quantum computers; the two kinds do not
// mix). A recipient can only seal, and only its identity, AGE-SECRET-KEY-…, opens. So the machine that makes backups
// needs no secret.
//
// What is sealed shows its size and its number of recipients, and nothing else. It does not show who sealed it: a
// recipient is no signature.
package seal
