package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/internal/human"
)

const indexName = "memory_index.json"

// index is the content of memory_index.json in any of its forms.
type index struct {
	present  bool
	complete bool
	files    map[string]string // memory id → path as written, "" if it has none
	byPath   map[string]string // path → memory id
	groups   map[string]string // assembly id → path as written
	groupAt  map[string]string // path → assembly id
}

// indexOwn has the names of top-level members that are not entries in the flat form of the index.
var indexOwn = map[string]bool{
	"metadata": true, "last_updated": true, "count": true, "version": true, "self_model": true,
	"world_model": true, "by_session": true, "by_expiry": true, "stats": true,
}

// readIndex reads memory_index.json as a stream. If the file has a fault, readIndex reports the fault as a Problem and
// returns the entries before it. That is enough, because the index only shows where files are: every memory file is
// imported, listed or not.
func (r *run) readIndex() (*index, error) {
	ix := &index{files: map[string]string{}, byPath: map[string]string{}, groups: map[string]string{},
		groupAt: map[string]string{}}
	f, err := r.open(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return ix, nil
	}
	if err == nil {
		defer f.Close()
		ix.present = true
		err = ix.decode(f)
	}
	if err != nil {
		return ix, r.problem(Problem{Path: indexName, Kind: KindIndex,
			Reason: fmt.Sprintf("%v; read before the fault: %s; every memory file is imported, whether the index "+
				"lists the file or not",
				clip(err), human.Count(len(ix.files), "entry", "entries"))})
	}
	ix.complete = true
	return ix, nil
}

func (ix *index) decode(r io.Reader) error {
	dec := jsontext.NewDecoder(newFiniteReader(r), lax...)
	return eachMember(dec, func(name string) error {
		switch {
		case name == "memories":
			return ix.section(dec, ix.memory)
		case name == "assemblies":
			return ix.section(dec, ix.group)
		case indexOwn[name] || dec.PeekKind() != '{':
			return dec.SkipValue()
		}
		val, err := dec.ReadValue()
		if err == nil {
			ix.flat(name, val)
		}
		return err
	})
}

// section calls entry for each member of one section of the index, such as the object "memories". A section that is
// not an object is skipped.
func (ix *index) section(dec *jsontext.Decoder, entry func(string, jsontext.Value)) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	return eachMember(dec, func(id string) error {
		val, err := dec.ReadValue()
		if err == nil {
			entry(id, val)
		}
		return err
	})
}

func (ix *index) memory(id string, val jsontext.Value) {
	file, kind := entryOf(val)
	if kind == "assembly" {
		ix.group(id, val)
		return
	}
	ix.files[id] = file
	if file != "" {
		ix.byPath[file] = id
	}
}

func (ix *index) group(id string, val jsontext.Value) {
	file, _ := entryOf(val)
	ix.groups[id] = file
	if file != "" {
		ix.groupAt[file] = id
	}
}

// flat adds an entry of form B (see Formats in the package comment). An object that has neither a file nor a
// type is not an entry.
func (ix *index) flat(id string, val jsontext.Value) {
	if file, kind := entryOf(val); file != "" || kind != "" {
		ix.memory(id, val)
	}
}

// entryOf returns the path, with slashes, and the type in an entry of the index; an entry that is a string has only
// the path.
func entryOf(val jsontext.Value) (file, kind string) {
	switch val.Kind() {
	case '"':
		file = unquote(val)
	case '{':
		_ = members(val, func(name string, v jsontext.Value) error {
			if v.Kind() != '"' {
				return nil
			}
			switch name {
			case "path", "filepath", "file_path":
				file = unquote(v)
			case "type":
				kind = unquote(v)
			}
			return nil
		}, lax...)
	}
	if file == "" {
		return "", kind
	}
	return path.Clean(strings.ReplaceAll(file, `\`, "/")), kind
}

// eachMember calls f for each member of the next object; f must read or skip the value.
func eachMember(dec *jsontext.Decoder, f func(name string) error) error {
	tok, err := dec.ReadToken()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the file is empty", errNoObject)
	} else if err != nil {
		return err
	}
	if k := tok.Kind(); k != '{' {
		return fmt.Errorf("%w: %s", errNoObject, k)
	}
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if tok.Kind() == '}' {
			return nil
		}
		if err := f(tok.String()); err != nil {
			return err
		}
	}
}
