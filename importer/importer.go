package importer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Format is a format in which other systems store memories.
type Format string

// The formats.
const (
	Synthians Format = "synthians" // also the older files of Lucidia
	Vizor     Format = "vizor"
	JSONL     Format = "jsonl"
	// ServerMemory is the file of the MCP reference memory server: lines that are entities or
	// relations. JSONL reads such lines, too.
	ServerMemory Format = "server-memory"
)

// Formats returns all formats.
func Formats() []Format {
	return []Format{Synthians, Vizor, JSONL, ServerMemory, Mem0, LangChain, LlamaIndex, Chat}
}

// Options are the options of Open. The zero value has the defaults.
type Options struct {
	// Location is the time zone of times without a zone; nil is UTC.
	Location *time.Location
	// SetAside imports from backups/, corrupted_backups/ and ltm/ the memories whose id is nowhere
	// else. Without it they are only reported.
	SetAside bool
	// MaxBytes is the maximum size of a file or line that is read as one memory; 0 means 64 MiB.
	MaxBytes int
}

const defaultMaxBytes = 64 << 20

// Item is one memory or one assembly.
type Item struct {
	ID       string
	Assembly bool   // the item is an assembly: JSON is for assembly.Decode, not for memstore.Decode
	JSON     []byte // one JSON object with the id; the caller may keep it
	Path     string // position in the source, relative to it; "file:12" is a line
	Note     string // something unexpected about the item, usually ""
	VectorID int64  // number of the item's vector in the source; 0: the item has no vector, or its number cannot be kept

	// Vector reports whether the document had no embedding and got the vector of the vector file;
	// see KindVector.
	Vector bool

	names   []string          // names of the members, if already known
	renamed map[string]string // renamed members: name in the source → name in JSON
}

// Kind is the kind of a problem.
type Kind string

// The kinds.
const (
	KindCorrupt   Kind = "corrupt"        // the text is not JSON, or not an object
	KindUnread    Kind = "unreadable"     // the file could not be read
	KindTooLarge  Kind = "too large"      // larger than Options.MaxBytes
	KindMended    Kind = "mended"         // the text could be read only after a correction, which the reason names
	KindWrongID   Kind = "wrong id"       // the file's name does not match the id
	KindUnindexed Kind = "unindexed"      // the file has no entry in the index
	KindMissing   Kind = "missing"        // an entry of the index that has no file
	KindGhost     Kind = "ghost"          // an id in a vector mapping without file and entry
	KindDuplicate Kind = "duplicate"      // an id that was already imported from another file
	KindCopy      Kind = "copy"           // a .bak file, which is a copy
	KindSetAside  Kind = "set aside"      // found in backups/, corrupted_backups/, ltm/ or an assembly only
	KindMember    Kind = "missing member" // an assembly has members that the source lacks
	KindMerge     Kind = "merge"          // a contradiction between a merge log and the assemblies
	KindNumber    Kind = "vector number"  // two vectors have the same number
	KindVector    Kind = "vector taken"   // a document without an embedding got the vector of the vector file
	// the vector of the document in the vector file cannot be an embedding, or differs from the embedding in the
	// document; the embedding in the document is used
	KindStale     Kind = "stale vector"
	KindVectors   Kind = "vector file" // a vector file that cannot be read or used
	KindIndex     Kind = "index"       // index, mapping, merge log or stats cannot be read completely
	KindNotMemory Kind = "not a memory"
	KindContent   Kind = "content is not text" // a record whose content or text is not a string
)

// Problem is a problem to be reported to the user. It does not end the run.
type Problem struct {
	Path   string `json:"path,omitempty"`
	ID     string `json:"id,omitempty"`
	Kind   Kind   `json:"kind"`
	Reason string `json:"reason"`
	Taken  bool   `json:"taken"` // the item of the problem was imported nevertheless

	LeftOut bool `json:"left_out"` // the source has data at this place that no item contains
}

func (p Problem) String() string {
	s := p.Path
	if p.ID != "" {
		s += " (" + p.ID + ")"
	}
	return fmt.Sprintf("%s: %s: %s", s, p.Kind, p.Reason)
}

// Entry is one step of a run: either an item or a problem.
type Entry struct {
	Item    *Item
	Problem *Problem
}

// Source is an opened source that can be read once or more often. It must not be used by several
// goroutines at the same time.
type Source struct {
	format Format
	opts   Options
	root   *os.Root  // the folder
	only   string    // the only file in it that is read, "" for all
	stream io.Reader // lines; then root and only are not used
	name   string    // name of the stream
	report Report    // the report of the last run
}

// Open opens a folder, or a single file in a format other than Synthians. If format is empty, Open detects the format.
func Open(path string, format Format, opts Options) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening the source: %w", err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("opening the source: %w; give the path of a file or a folder",
			&vfs.NotRegularError{Path: path, Mode: info.Mode()})
	}
	if format == "" {
		if format, err = Detect(path); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(Formats(), format) {
		return nil, fmt.Errorf("%w: format %q is not one of %v", errs.ErrInvalid, format, Formats())
	}
	s := &Source{format: format, opts: opts.withDefaults()}
	dir := path
	if !info.IsDir() {
		if format == Synthians {
			return nil, fmt.Errorf("%w: %s is a file; give the path of the folder with memory_index.json and the "+
				"memories", errs.ErrInvalid,
				path)
		}
		dir, s.only = filepath.Split(path)
		dir = cmp.Or(dir, ".")
	}
	if s.root, err = os.OpenRoot(dir); err != nil {
		return nil, fmt.Errorf("opening the source: %w", err)
	}
	return s, nil
}

// OpenLines returns a source that reads JSONL from r. Such a source can be read only once. name stands for the file in
// Item.Path and Problem.Path.
func OpenLines(r io.Reader, name string, opts Options) *Source {
	return &Source{format: JSONL, opts: opts.withDefaults(), stream: r, name: name}
}

func (o Options) withDefaults() Options {
	if o.Location == nil {
		o.Location = time.UTC
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	return o
}

// Format returns the format in which the source is read.
func (s *Source) Format() Format { return s.format }

// Close releases the folder.
func (s *Source) Close() error {
	if s.root == nil {
		return nil
	}
	return s.root.Close()
}

// All yields items and problems. If the source cannot be read any further, or ctx has ended, the
// error is yielded last.
func (s *Source) All(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r := &run{Source: s, ctx: ctx, yield: yield, seen: map[string]origin{}, groups: map[string]origin{},
			census: newCensus()}
		defer func() { s.report = r.census.report() }()
		var err error
		switch s.format {
		case Synthians:
			err = r.synthians()
		case Vizor:
			err = r.vizor()
		case Mem0, LangChain, LlamaIndex, Chat:
			err = r.values()
		default:
			err = r.lines()
		}
		if err != nil && !r.stopped {
			yield(Entry{}, fmt.Errorf("import %s: %w", s.format, err))
		}
	}
}
