package storetest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/memstore"
)

// What tests of several processes write: a document whose text contains its state, and nothing else.

// Members is the number of memories that belong to one key of the form "….batch"; see MemberIDs.
const Members = 4

// Content returns a text that contains a state: the state, a space, and the last character of the state, repeated size
// times.
func Content(state string, size int) string {
	return state + " " + strings.Repeat(state[len(state)-1:], size)
}

// Stated returns the state that is contained in a text made by Content. If the text is not as Content makes it, Stated
// returns a description of the difference.
func Stated(text string) string {
	state, rest, _ := strings.Cut(text, " ")
	if state == "" || rest != strings.Repeat(state[len(state)-1:], len(rest)) {
		return "torn:" + state
	}
	return state
}

// NoState returns the text that stands for the state of a memory that cannot be read because of an error: "-" if the
// memory does not exist, otherwise a text with the error.
func NoState(err error) string {
	if errors.Is(err, errs.ErrNotFound) {
		return "-"
	}
	return "error:" + strings.ReplaceAll(err.Error(), " ", "_")
}

// StateOf returns the state that a memory contains. If the memory's embedding is not that of the same state, StateOf
// returns a text that reports this.
func StateOf(m memstore.Memory, err error) string {
	if err != nil {
		return NoState(err)
	}
	state := Stated(m.Content)
	if !slices.Equal(m.Embedding, Vector(m.ID, state)) {
		return "other_embedding:" + state
	}
	return state
}

// Vector returns the embedding that the memory id has in a state. In some states the memory has no embedding, and the
// result is nil.
func Vector(id, state string) []float32 {
	if !strings.HasPrefix(id, "s") || !strings.HasSuffix(id, ".k1") && !strings.HasSuffix(id, ".k2") {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte(state))
	rng := rand.New(rand.NewPCG(h.Sum64(), 7))
	v := make([]float32, 16)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// IsGroup reports whether a key is the id of an assembly.
func IsGroup(id string) bool { return strings.HasSuffix(id, ".group") }

// IsNote reports whether a key is that of a note.
func IsNote(id string) bool { return strings.HasSuffix(id, ".note") }

// NotePath returns the path of the note with a key.
func NotePath(id string) string { return "storm/" + id + ".md" }

// MemberIDs returns the ids of the memories that belong to a key: Members ids if the key ends with ".batch", otherwise
// only the key itself.
func MemberIDs(key string) (ids []string) {
	if !strings.HasSuffix(key, ".batch") {
		return []string{key}
	}
	for i := range Members {
		ids = append(ids, fmt.Sprintf("%s/%d", key, i))
	}
	return ids
}

// OneState returns the state of a key. All memories that belong to the key must have the same state; otherwise OneState
// returns a description of the difference.
func OneState(key string, get func(id string) string) string {
	ids := MemberIDs(key)
	state := get(ids[0])
	for _, id := range ids[1:] {
		if other := get(id); other != state {
			return "half:" + state + "/" + other
		}
	}
	return state
}

// StatesBelow returns a function that reads the states of memories from the files in a folder, without the
// store.
func StatesBelow(dir string) func(id string) string {
	return func(id string) string {
		name := filepath.Join("memories", jsondoc.FileName(id))
		switch {
		case IsGroup(id):
			name = filepath.Join("assemblies", jsondoc.FileName(id))
		case IsNote(id):
			name = filepath.Join("notes", filepath.FromSlash(NotePath(id)))
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return "-"
		}
		if err != nil {
			return NoState(err)
		}
		if IsNote(id) {
			return Stated(string(b))
		}
		if IsGroup(id) {
			var a assembly.Assembly
			if err := a.UnmarshalJSON(b); err != nil {
				return NoState(err)
			}
			return Stated(a.Description)
		}
		var m memstore.Memory
		return StateOf(m, m.UnmarshalJSON(b))
	}
}
