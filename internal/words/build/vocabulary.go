package build

import (
	"bytes"
	"hash/maphash"
)

// vocabulary is what a Builder knows of words and terms: a hash table, open and probed in a row, over terms
// in pieces of memory that stay where they are. A map of Go has a string for each word and is looked into
// twice for one that is new, which was a third of the time that a segment of many different words took.
type vocabulary struct {
	seed  maphash.Seed
	slots []uint64 // half of a hash, and below it 1 + the number of the word; 0: free. Half are, at least
	terms [][]term // by number, slabTerms each
	known int      // words
	text  []byte   // of all of them
}

// slabTerms is how many terms are made at a time.
const slabTerms = 512

// term is a word, and where it is as a term in the documents before, in the order of Add: of each document
// uvarint (document − document before)·2 + plain, and where it is not plain the fields, as a segment has
// them.
type term struct {
	list    []byte
	first   [8]byte // the memory of list as long as that is enough: most words are rare
	from    uint32  // its bytes in text
	size    uint8
	common  bool   // see analyzer.Common
	as      int32  // 1 + the number of its term where a text has it; 0: not known yet; dropped
	last    int32  // the last document
	n       int32  // documents
	content uint32 // how often it is in the content of the document that is added
	other   int32  // where it is in times, behind 0
}

// dropped says of a word that nothing finds it.
const dropped = -1

func newVocabulary() vocabulary {
	return vocabulary{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<10)}
}

// at is the word of a number.
func (v *vocabulary) at(n int32) *term { return &v.terms[n/slabTerms][n%slabTerms] }

// bytes are those of a word.
func (v *vocabulary) bytes(t *term) []byte { return v.text[t.from:][:t.size] }

// number is that of a word of up to 255 bytes, which is known from here on.
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

// grow doubles the slots.
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
