package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// mappingNames are the files that map an id to its number in the vector file.
// The vectors are in the memories themselves; what matters here are ids that
// are nowhere else: somebody may miss them.
var mappingNames = []string{"faiss_index.bin.mapping.json", "id_to_index_mapping.json", "id_to_index.json", "mapping.json"}

// ghosts reports the ids of the mappings that neither a file nor an entry has.
func (r *run) ghosts(known func(id string) bool, listed map[string]bool) error {
	for _, dir := range []string{"", "vector_index/"} {
		for _, name := range mappingNames {
			name = dir + name
			if dir == "" && !listed[name] {
				continue
			}
			if err := r.ghostsOf(name, known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) ghostsOf(name string, known func(id string) bool) error {
	f, err := r.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return r.problem(Problem{Path: name, Kind: KindIndex, Reason: err.Error()})
	}
	defer f.Close()
	dec := jsontext.NewDecoder(newFiniteReader(f), lax...)
	err = eachMember(dec, func(id string) error {
		if dec.PeekKind() != '0' {
			return dec.SkipValue()
		}
		val, err := dec.ReadValue()
		if err != nil || known(id) {
			return err
		}
		// Never through float64: half of these numbers are beyond 2^53.
		number, err := strconv.ParseInt(string(val), 10, 64)
		reason := fmt.Sprintf("vector %d belongs to it, but no file and no entry", number)
		if err != nil {
			reason = fmt.Sprintf("mapped to %s, which is no 64-bit integer, and there is no file and no entry", val)
		}
		return r.problem(Problem{Path: name, ID: id, Kind: KindGhost, Reason: reason})
	})
	if err == nil || errors.Is(err, errStop) || r.ctx.Err() != nil {
		return err
	}
	return r.problem(Problem{Path: name, Kind: KindIndex,
		Reason: fmt.Sprintf("%v; nothing is lost by it, the vectors are in the memories", clip(err))})
}

// nameOf is the id as old versions wrote it into a file name.
func nameOf(id string) string { return strings.ReplaceAll(id, ":", "-") }
