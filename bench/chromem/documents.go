package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// document is a document that both engines store.
type document struct {
	id, content string
	metadata    map[string]string
	vector      []float32
}

const contentBytes = 1000

// documents returns n new documents.
func documents(seed uint64, n, d int) []document {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	list := make([]document, n)
	for i := range list {
		list[i] = document{id: fmt.Sprintf("doc-%06d", i), content: text(r), vector: unit(r, d),
			metadata: map[string]string{"session_id": fmt.Sprint("s", i%100), "speaker": fmt.Sprint("p", i%7)}}
	}
	return list
}

// text returns a text of random words of two to nine letters.
func text(r *rand.Rand) string {
	b := make([]byte, 0, contentBytes)
	for len(b) < contentBytes {
		for range 2 + r.IntN(8) {
			b = append(b, 'a'+byte(r.IntN(26)))
		}
		b = append(b, ' ')
	}
	return string(b[:contentBytes])
}

// unit returns a random vector of length 1, which chromem stores unchanged.
func unit(r *rand.Rand, d int) []float32 {
	v, sum := make([]float32, d), 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
