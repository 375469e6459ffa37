package varve

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
)

// What the processes of a storm write: a document says its state in its text, and
// says nothing else.

// content is a state and what makes it long.
func content(state string, size int) string {
	return state + " " + strings.Repeat(state[len(state)-1:], size)
}

// stated is the state that a content says, or what is wrong with it.
func stated(text string) string {
	state, rest, _ := strings.Cut(text, " ")
	if state == "" || rest != strings.Repeat(state[len(state)-1:], len(rest)) {
		return "torn:" + state
	}
	return state
}

func noState(err error) string {
	if errors.Is(err, ErrNotFound) {
		return "-"
	}
	return "error:" + strings.ReplaceAll(err.Error(), " ", "_")
}

// stateOf is the state that a memory says. Its embedding must say the same.
func stateOf(m Memory, err error) string {
	if err != nil {
		return noState(err)
	}
	state := stated(m.Content)
	if !slices.Equal(m.Embedding, stormVector(m.ID, state)) {
		return "other_embedding:" + state
	}
	return state
}

// stormVector is the embedding of a memory in a state; some have none.
func stormVector(id, state string) []float32 {
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

// isGroup says that a key is that of an assembly.
func isGroup(id string) bool { return strings.HasSuffix(id, ".group") }

func memberIDs(key string) (ids []string) {
	if !strings.HasSuffix(key, ".batch") {
		return []string{key}
	}
	for i := range stormMembers {
		ids = append(ids, fmt.Sprintf("%s/%d", key, i))
	}
	return ids
}

// oneState is what all members of a key say.
func oneState(key string, get func(id string) string) string {
	ids := memberIDs(key)
	state := get(ids[0])
	for _, id := range ids[1:] {
		if other := get(id); other != state {
			return "half:" + state + "/" + other
		}
	}
	return state
}

// statesIn reads states from a store.
func statesIn(st *Store) func(id string) string {
	return func(id string) string {
		if !isGroup(id) {
			return stateOf(st.Get(context.Background(), id))
		}
		a, err := st.Assemblies().Get(context.Background(), id)
		if err != nil {
			return noState(err)
		}
		return stated(a.Description)
	}
}

// statesBelow reads them from the files, as anybody would.
func statesBelow(dir string) func(id string) string {
	return func(id string) string {
		folder := "memories"
		if isGroup(id) {
			folder = "assemblies"
		}
		b, err := os.ReadFile(filepath.Join(dir, folder, docfile.FileName(id)))
		if errors.Is(err, os.ErrNotExist) {
			return "-"
		}
		if err != nil {
			return noState(err)
		}
		if isGroup(id) {
			var a Assembly
			if err := a.UnmarshalJSON(b); err != nil {
				return noState(err)
			}
			return stated(a.Description)
		}
		var m Memory
		return stateOf(m, m.UnmarshalJSON(b))
	}
}
