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

// Format names a way to keep memories that is not this project's own.
type Format string

// The formats, as a command line would spell them.
const (
	Synthians Format = "synthians" // also the older files of Lucidia
	Vizor     Format = "vizor"
	JSONL     Format = "jsonl"
	// ServerMemory is the file of the MCP reference memory server: entities and
	// relations as lines. JSONL reads such lines, too.
	ServerMemory Format = "server-memory"
)

// Formats are all of them.
func Formats() []Format {
	return []Format{Synthians, Vizor, JSONL, ServerMemory, Mem0, LangChain, LlamaIndex, Chat}
}

// Options of Open. The zero value has the defaults.
type Options struct {
	// Location is where naive times were taken; nil is UTC.
	Location *time.Location
	// SetAside takes from backups/, corrupted_backups/ and ltm/ the memories
	// whose id is nowhere else. Without it they are only reported.
	SetAside bool
	// MaxBytes is the longest file or line that is read as one memory; 0 is 64 MiB.
	MaxBytes int
}

const defaultMaxBytes = 64 << 20

// Item is one memory or one assembly.
type Item struct {
	ID       string
	Assembly bool   // JSON is for assembly.Decode, not for memstore.Decode
	JSON     []byte // one JSON object that has the id; the caller may keep it
	Path     string // where it came from, relative to the source; "file:12" is a line
	Note     string // what a reader would not expect, "" mostly
	VectorID int64  // the number of its vector in the source, 0: none that could be kept

	// Vector reports whether the document had no embedding, and has that of the vector
	// file now; see KindVector.
	Vector bool

	names   []string          // the members, where they are known already
	renamed map[string]string // members under other names: in the source, in JSON
}

// Kind says what sort of problem it is.
type Kind string

// The kinds.
const (
	KindCorrupt   Kind = "corrupt"        // no JSON, or no object
	KindUnread    Kind = "unreadable"     // the file could not be read at all
	KindTooLarge  Kind = "too large"      // longer than Options.MaxBytes
	KindMended    Kind = "mended"         // could be read after a mend that the reason names
	KindWrongID   Kind = "wrong id"       // the file's name says another id
	KindUnindexed Kind = "unindexed"      // no entry of the index names the file
	KindMissing   Kind = "missing"        // an entry of the index without its file
	KindGhost     Kind = "ghost"          // a vector mapping's id without file and entry
	KindDuplicate Kind = "duplicate"      // an id that was already taken from elsewhere
	KindCopy      Kind = "copy"           // a .bak
	KindSetAside  Kind = "set aside"      // in backups/, corrupted_backups/, ltm/
	KindMember    Kind = "missing member" // an assembly names memories that the source has not
	KindMerge     Kind = "merge"          // what a merge log says and the assemblies do not
	KindNumber    Kind = "vector number"  // two vectors with one number
	KindVector    Kind = "vector taken"   // a document without an embedding got that of the vector file
	KindStale     Kind = "stale vector"   // the vector file has another one than the document, which counts
	KindVectors   Kind = "vector file"    // it cannot be read, or not be used
	KindIndex     Kind = "index"          // index, mapping, merge log or stats cannot be read to the end
	KindNotMemory Kind = "not a memory"
	KindContent   Kind = "content is not text" // a record whose content or text is no string
)

// Problem is reported to the user. It does not end the run.
type Problem struct {
	Path   string `json:"path,omitempty"`
	ID     string `json:"id,omitempty"`
	Kind   Kind   `json:"kind"`
	Reason string `json:"reason"`
	Taken  bool   `json:"taken"` // an item was still imported

	LeftOut bool `json:"left_out"` // the source has something here that is in no item
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

// Source is something opened to be read once or more often. It is not for
// several goroutines at once.
type Source struct {
	format Format
	opts   Options
	root   *os.Root  // the folder
	only   string    // the one file in it that is read, "" for all
	stream io.Reader // instead of both: lines
	name   string    // of the stream
	report Report    // of the last run
}

// Open opens a folder, or a single file of Vizor's or of lines. An empty
// format is found out.
func Open(path string, format Format, opts Options) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open the source: %w; name a file or a folder",
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
			return nil, fmt.Errorf("%w: %s is a file; name the folder with memory_index.json and the memories", errs.ErrInvalid,
				path)
		}
		dir, s.only = filepath.Split(path)
		dir = cmp.Or(dir, ".")
	}
	if s.root, err = os.OpenRoot(dir); err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	return s, nil
}

// OpenLines reads lines, JSONL, from r once; name is used in paths.
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

// Format returns the format as which the source is read.
func (s *Source) Format() Format { return s.format }

// Close releases the folder.
func (s *Source) Close() error {
	if s.root == nil {
		return nil
	}
	return s.root.Close()
}

// All yields items and problems. An error is yielded last, when the source
// itself can be read no further or ctx has ended.
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
