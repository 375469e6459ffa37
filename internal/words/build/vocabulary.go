package build

import (
	"bytes"
	"hash/maphash"
)

// vocabulary holds the words and terms that a Builder knows. It is a hash table with open addressing and linear
// probing, over terms in slabs of memory that never move. A Go map would need a string per word and two look-ups for a
// new word, which took a third of the time to build a segment of many different words.
type vocabulary struct {
	seed maphash.Seed
	// Half of a hash, followed by 1 + the number of the word in 32 bits; 0: free. At least half of the slots are free.
	slots []uint64
	terms [][]term // terms by number, in slabs of slabTerms each
	known int      // number of words
	text  []byte   // bytes of all words
}

// slabTerms is the number of terms allocated at a time.
const slabTerms = 512

// term is an entry of the vocabulary: a word, the term of some words, or both. If documents have it as a term, list
// has its postings, for documents in the order of Add: for each document uvarint (document − previous document)·2 +
// plain and, if plain is 0, the fields as in a segment.
type term struct {
	list    []byte
	first   [8]byte // first memory of list, used until it is full: most words are rare
	from    uint32  // offset of the word's bytes in text
	size    uint8
	common  bool   // the word is a stop word, see analyzer.Common
	as      int32  // 1 + the number of the term of this word; 0: not looked up yet; dropped: not indexed
	last    int32  // number of the last document that has the term
	n       int32  // number of documents that have the term
	content uint32 // count of the term in the content of the document being added
	other   int32  // 1 + the term's index in Builder.times; 0: none
}

// dropped is the value of term.as for a word that is not indexed.
const dropped = -1

func newVocabulary() vocabulary {
	return vocabulary{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<10)}
}

// at returns the entry of the word with the number n.
func (v *vocabulary) at(n int32) *term { return &v.terms[n/slabTerms][n%slabTerms] }

// bytes returns the bytes of a word.
func (v *vocabulary) bytes(t *term) []byte { return v.text[t.from:][:t.size] }

// number returns the number of a word of up to 255 bytes, and adds the word if it is new.
func (v *vocabulary) number(word []byte) int32 {
	h := maphash.Bytes(v.seed, word) >> 32
	mask := uint64(len(v.slots) - 1)
	i := h & mask
	for ; v.slots[i] != 0; i = (i + 1) & mask {
		if s := v.slots[i]; s>>32 == h {
			if n := int32(uint32(s) - 1); bytes.Equal(v.bytes(v.at(n)), word) {
				return n
			}
		}
	}
	n := int32(v.known)
	v.slots[i] = h<<32 | uint64(n+1)
	if v.known++; v.known%slabTerms == 1 {
		v.terms = append(v.terms, make([]term, slabTerms))
	}
	t := v.at(n)
	t.from, t.size, t.last, t.common = uint32(len(v.text)), uint8(len(word)), -1, len(word) > 0 && word[0] == 0
	v.text = append(v.text, word...)
	if 2*v.known > len(v.slots) {
		v.grow()
	}
	return n
}

// grow doubles the number of slots.
func (v *vocabulary) grow() {
	old := v.slots
	v.slots = make([]uint64, 2*len(old))
	mask := uint64(len(v.slots) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := s >> 32 & mask
		for v.slots[i] != 0 {
			i = (i + 1) & mask
		}
		v.slots[i] = s
	}
}
