package storetest

import (
	"math/rand/v2"
	"strings"
)

// Text returns a text of n letters that the log compresses about 25-fold. A text of a single repeated letter would not
// do: it could be compressed more than 64-fold, and the log writes such a text without compression.
func Text(n int) string {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	block := make([]byte, max(64, n/32))
	for i := range block {
		block[i] = 'a' + byte(r.Uint32N(26))
	}
	return strings.Repeat(string(block), n/len(block)+1)[:n]
}
