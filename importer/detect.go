package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/vfs"
)

// samples is the maximum number of files in a folder whose contents Detect examines.
const samples = 32

// Detect returns the format of a folder or file, by file names if they are sufficient, otherwise by
// the first files' contents. The error matches ErrInvalid for a store of this project, for an
// unknown format and for an empty folder.
func Detect(path string) (Format, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("opening the source: %w", err)
	}
	if !info.IsDir() {
		return detectFile(path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return "", fmt.Errorf("opening the source: %w", err)
	}
	defer root.Close()
	r := &run{Source: &Source{root: root, opts: Options{}.withDefaults()}}
	if r.isStore() {
		return "", fmt.Errorf("%w: %s is already a Varve store: open the store, or export from it", errs.ErrInvalid, path)
	}
	for _, name := range append([]string{indexName}, mappingNames...) {
		if _, err := root.Lstat(name); err == nil {
			return Synthians, nil
		}
	}
	if _, err := root.Lstat("docstore.json"); err == nil {
		return LlamaIndex, nil
	}
	for _, dir := range []string{".", "memories"} {
		format, err := r.detectIn(dir)
		if format != "" || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return format, err
		}
	}
	return "",
		fmt.Errorf("%w: %s has no known format: no %s, no session file (Vizor), no memory file with id and content, no "+
			".jsonl file, no records of mem0, LangChain or llama_index",
			errs.ErrInvalid, path, indexName)
}

// isStore reports whether config.json has the member "varve", which marks a folder as a store.
func (r *run) isStore() bool {
	raw, err := r.read("config.json")
	if err != nil {
		return false
	}
	found := false
	_ = members(raw, func(name string, _ jsontext.Value) error {
		found = found || name == "varve"
		return nil
	}, lax...)
	return found
}

// detectIn examines the first files of a folder until one has a known format.
func (r *run) detectIn(dir string) (Format, error) {
	files, _, err := r.list(dir)
	if err != nil {
		return "", err
	}
	looked, lines := 0, false
	for _, name := range files {
		switch filepath.Ext(name) {
		case ".jsonl", ".ndjson":
			lines = true
		case ".json":
			if looked++; looked > samples {
				continue
			}
			if raw, err := r.read(name); err == nil {
				f := formatOf(raw)
				if form := formOf(raw); f == "" && form != JSONL {
					f = form
				}
				if f != "" {
					return f, nil
				}
			}
		}
	}
	if lines {
		return JSONL, nil
	}
	return "", nil
}

func formatOf(raw []byte) Format {
	switch doc, _, err := parse(raw); {
	case err != nil:
		return ""
	case doc.memories && !doc.content:
		return Vizor
	case doc.grouping, doc.content, doc.idText && doc.embedding:
		return Synthians
	}
	return ""
}

// formOf returns the format of the first record in a value; JSONL for a memory or assembly of Varve, "" for an unknown
// one.
func formOf(raw []byte) Format { return formWithin(raw, 0) }

// formWithin is like formOf, for a value inside depth nested lists.
func formWithin(raw []byte, depth int) Format {
	if depth > nestMost {
		return ""
	}
	if text := bytes.TrimSpace(bytes.TrimPrefix(raw, bom)); len(text) > 0 && text[0] == '[' {
		dec := jsontext.NewDecoder(newFiniteReader(bytes.NewReader(text)), lax...)
		if _, err := dec.ReadToken(); err != nil || dec.PeekKind() == ']' {
			return ""
		}
		v, err := dec.ReadValue()
		if err != nil {
			return ""
		}
		return formWithin(v.Clone(), depth+1)
	}
	doc, _, err := parse(raw)
	if err != nil {
		return ""
	}
	if many, ok := elements(doc.text); ok && (!doc.content || !doc.idText) {
		for first := range many {
			return formWithin(first.val, depth+1)
		}
		return LlamaIndex // an empty docstore
	}
	if rec := recognise(doc); rec != nil {
		return rec.form
	}
	if doc.content || doc.isAssembly() || doc.idText && doc.embedding {
		return JSONL
	}
	return ""
}

// detectFile returns the format of a single file. It recognizes a file of lines by its name, or by
// a first line that is a complete object.
func detectFile(path string) (Format, error) {
	f, err := vfs.OpenGiven(path)
	if err != nil {
		return "", fmt.Errorf("opening the source: %w", err)
	}
	defer f.Close()
	in := bufio.NewReader(io.LimitReader(f, defaultMaxBytes))
	if what := foreignFile(in); what != nil { // checked first: a sparse file has 64 MiB of zeros to read
		return "", fmt.Errorf("%w: %s is %w", errs.ErrInvalid, path, what)
	}
	first, err := in.ReadBytes('\n')
	if _, bad := graph.ParseLine(bytes.TrimPrefix(first, bom)); bad == nil {
		return ServerMemory, nil
	}
	form := formOf(first)
	if slices.Contains([]string{".jsonl", ".ndjson"}, strings.ToLower(filepath.Ext(path))) {
		return cmp.Or(form, JSONL), nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		if doc, _, err := parse(first); form != "" || err == nil && !doc.memories {
			return cmp.Or(form, JSONL), nil
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, defaultMaxBytes))
	if err == nil && formatOf(raw) == Vizor {
		return Vizor, nil
	}
	if form := formOf(raw); form != "" {
		return form, nil
	}
	return "",
		fmt.Errorf("%w: %s has no known format: neither lines or an array of JSON objects with content, nor records of "+
			"mem0, LangChain, llama_index or a chat, nor a session file (Vizor)",
			errs.ErrInvalid, path)
}
