package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Doc is one document. Most engines store JSON; Varve makes its own JSON, of the same length, from ID and Content.
type Doc struct {
	ID      string
	Content string
	JSON    []byte
	Session string // name of the session; empty: oneSession
}

const oneSession = "s1"

// session returns the name of the document's session.
func (d *Doc) session() string { return cmp.Or(d.Session, oneSession) }

// Engine is a database, or another way to store documents, that is measured. Put, PutBatch and Get are called by
// several goroutines at the same time. A put must be durable when it returns. The caller owns the result of Get.
type Engine interface {
	Name() string
	Open(dir string) error
	Put(Doc) error
	PutBatch([]Doc) error
	Get(id string) ([]byte, error)
	Close() error
	// MultiProcess reports whether several processes may have the database open.
	MultiProcess() bool
}

// Flusher is an engine whose files follow its acknowledgements: Flush returns
// when they are durable.
type Flusher interface{ Flush() error }

// Filler is an engine that can be filled without making each put durable.
type Filler interface{ Fill([]Doc) error }

// engines returns a function for each engine that makes a new one. Varve is last, and is there only with its build tag.
func engines() []func() Engine {
	peers := []func() Engine{
		func() Engine { return &sqlite{driver: "sqlite3", name: "SQLite (mattn, C)"} },
		func() Engine { return &sqlite{driver: "sqlite", name: "SQLite (modernc, Go)"} },
		func() Engine { return &bolt{} },
		func() Engine { return &pebbleDB{} },
		func() Engine { return &badgerDB{} },
		func() Engine { return &files{} },
	}
	return append(peers, varveEngine()...)
}

// chosen returns the engines whose names contain one of the comma-separated words. "the same calls" is not a
// database, and is included only if it is named.
func chosen(list string) ([]func() Engine, error) {
	all := engines()
	if list == "" {
		return all, nil
	}
	all = append(all, callsEngine()...)
	for _, f := range all {
		if f().Name() == list { // one whole name, which may have a comma
			return []func() Engine{f}, nil
		}
	}
	var out []func() Engine
	for word := range strings.SplitSeq(list, ",") {
		n := len(out)
		for _, f := range all {
			if strings.Contains(strings.ToLower(f().Name()), strings.ToLower(word)) {
				out = append(out, f)
			}
		}
		if len(out) == n {
			return nil, fmt.Errorf("no engine %q", word)
		}
	}
	return out, nil
}

const docSize = 1024

// source makes documents, the same ones for the same seed.
type source struct {
	rng   *rand.Rand
	words *vocabulary // vocabulary of the text; nil: random letters
}

// prose makes all sources generate documents of words.
var prose bool

func newSource(seed uint64) *source {
	if prose {
		return newProse(seed)
	}
	return newLetters(seed)
}

// newLetters returns a source of documents made of random letters, in which nearly every word is new.
func newLetters(seed uint64) *source {
	return &source{rand.New(rand.NewPCG(seed, 0x76617276)), nil}
}

// vocabulary is a set of words with the frequencies of a language: a few words are in every text, most are in
// hardly any.
type vocabulary struct {
	words []string
	zipf  *rand.Zipf
}

// newProse returns a source of documents made of words.
func newProse(seed uint64) *source {
	rng := rand.New(rand.NewPCG(1, 2))
	v := &vocabulary{words: make([]string, 30_000)}
	for i := range v.words {
		b := make([]byte, 2+rng.IntN(8))
		for j := range b {
			b[j] = letters[rng.IntN(26)]
		}
		v.words[i] = string(b)
	}
	s := newLetters(seed)
	v.zipf = rand.NewZipf(s.rng, 1.1, 3, uint64(len(v.words)-1))
	s.words = v
	return s
}

func (v *vocabulary) fill(text []byte) {
	for i := 0; i < len(text); {
		i += copy(text[i:], v.words[v.zipf.Uint64()])
		if i < len(text) {
			text[i] = ' '
			i++
		}
	}
}

const letters = "abcdefghijklmnopqrstuvwxyz      "

func (s *source) next() Doc { return s.under(s.id()) }

func (s *source) id() string {
	a, b := s.rng.Uint64(), s.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x", uint32(a>>32), uint16(a>>16), a&0xfff, uint16(b>>48),
		b&0xffffffffffff)
}

const beforeID = `{"id":"`

// renamed returns a document with the same content and a new id. It costs a copy; generating text would cost a
// tenth of a fast put.
func (s *source) renamed(d Doc) Doc {
	d.ID, d.JSON = s.id(), bytes.Clone(d.JSON)
	copy(d.JSON[len(beforeID):], d.ID)
	return d
}

// under returns a document with this id and different content.
func (s *source) under(id string) Doc { return s.document(id, "") }

// in returns a document of a session.
func (s *source) in(session string) Doc { return s.document(s.id(), session) }

func (s *source) document(id, session string) Doc {
	head := beforeID + id + `","content":"`
	tail := `","metadata":{"session_id":"` + cmp.Or(session, oneSession) + `"}}`
	text := make([]byte, docSize-len(head)-len(tail))
	if s.words != nil {
		s.words.fill(text)
		return Doc{ID: id, Content: string(text), JSON: []byte(head + string(text) + tail), Session: session}
	}
	for i := 0; i < len(text); {
		for r, k := s.rng.Uint64(), 0; k < 12 && i < len(text); k++ {
			text[i] = letters[r&31]
			r >>= 5
			i++
		}
	}
	return Doc{ID: id, Content: string(text), JSON: []byte(head + string(text) + tail), Session: session}
}

func (s *source) docs(n int) []Doc {
	out := make([]Doc, n)
	for i := range out {
		out[i] = s.next()
	}
	return out
}
