package repair

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Store is an open store, as Apply works on it. The root implements it.
type Store interface {
	Source() Source
	// kind is that of the document: the first byte of its key in the log.

	// PutBack puts a document that the store knows into its file again. flush.lock
	// is held. What stands there is set aside.
	PutBack(ctx context.Context, kind byte, id string, version wal.LSN, mtime time.Time, doc []byte) error
	// Adopt takes a document, byte for byte, into the log as a new version over
	// version was (0: there is none); errs.ErrConflict when it is another by now.
	Adopt(ctx context.Context, kind byte, doc []byte, mtime time.Time, was wal.LSN) (wal.LSN, error)
	// AdoptNew takes documents that are not there yet in as few commits as may be.
	// flush.lock is held.
	AdoptNew(ctx context.Context, kind byte, list []*Adoption)
	// Judge reads documents as everybody does, and says what became of each: an edited file
	// is adopted, many in one commit, or set aside if it was made of an older version than
	// the present one.
	Judge(ctx context.Context, kind byte, list []*Judgement)
	// Delete writes a document's deletion into the log, if its version is still this one.
	Delete(ctx context.Context, kind byte, id string, was wal.LSN) error
	// Settle makes files and index durable up to now, all of the index in its base,
	// and looks through what processes left in tmp/.
	Settle(ctx context.Context) error
	// Reindex makes the index anew from log and files, and where the one that stands is
	// sound but wrong, from the files only. The old one goes to backups/.
	Reindex(ctx context.Context, wrong bool) error
	// Revector makes the vectors anew from the embeddings of all documents. Those that
	// stand stay until the new ones are complete.
	Revector(ctx context.Context) error
	// Rework makes working memory anew, of what log and archive have of the scope to
	// which a file belongs that cannot be used, and says how much that was; "" when the
	// file can be used after all.
	Rework(ctx context.Context, file string) (string, error)
	// Regroup takes members out of an assembly, if its version is still this one, and
	// gives it the composite of those that are left. flush.lock is held.
	Regroup(ctx context.Context, id string, was wal.LSN, out []string) (wal.LSN, error)
	Close() error
}

// Adoption is a document that AdoptNew takes in, and what became of it.
type Adoption struct {
	Doc     []byte
	Mtime   time.Time
	Version wal.LSN
	Err     error
}

// Judgement is a document that Judge reads, and what became of its file.
type Judgement struct {
	ID      string
	Was     wal.LSN // the version that an edit was adopted over
	Version wal.LSN // as which; 0: it was not, or nobody can say
	Err     error   // of reading it
}

// Options is what Plan needs besides the folder. The root fills them.
type Options struct {
	// Open opens the store; readOnly changes nothing on disk. The other way it
	// may make log and index anew, as everybody's opening does.
	Open func(ctx context.Context, readOnly bool) (Store, error)
	// Config says what is wrong with the text of a config.json.
	Config func(text []byte) error

	FS         vfs.FS
	Clock      func() time.Time
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	// Random fills an id; its source decides whether runs repeat.
	Random func([]byte) error
	// LockWait bounds the wait for open.lock.
	LockWait time.Duration
	// StateDir is where the key is by which a manifest is known as this copy's; "": nowhere.
	StateDir string
	// Verify is how the store is looked at; Part and Parts plan for a sample.
	Verify VerifyOptions
}

// Verb is what an action does.
type Verb string

// The verbs, in the order in which they are applied.
const (
	MakeRoom      Verb = "make room for the folder"  // what is in its place goes to quarantine/, and nothing that it leads to
	MoveOut       Verb = "move out of the way"       // what is in the place of a file and is none
	FixConfig     Verb = "write a valid config.json" // its invalid members become their defaults
	NewMarks      Verb = "write the checkpoint anew"
	NewLog        Verb = "begin the log anew"       // what can be read of the old one goes to files and index
	SetSegment    Verb = "set the segment aside"    // released: all that it held is elsewhere, or history
	SetIndexAside Verb = "set the index aside"      // opening makes it anew
	Reopen        Verb = "make log and index anew"  // opening does
	Rebuild       Verb = "rebuild the index"        // from log and files
	SetAside      Verb = "set aside"                // into quarantine/, with a note
	Restore       Verb = "restore the file"         // from the copy in log or archive
	Adopt         Verb = "adopt"                    // the file's content becomes the newest version
	Salvage       Verb = "salvage"                  // what can be read of it, marked as partial
	RecordLost    Verb = "record as lost"           // a note with all that is known; the entry is deleted
	Rework        Verb = "make the scope anew"      // from what log and archive have; its file is set aside
	TakeOut       Verb = "take out what is missing" // members of an assembly that are not there; see RepairPlan.TakeOutMissing
	Recompute     Verb = "recompute the composite"  // from the members' embeddings
	Revector      Verb = "make the vectors anew"    // from the embeddings in the documents
	Tidy          Verb = "tidy tmp/"                // what processes left there that are gone
)

// order is the place of a verb among the others.
var order = map[Verb]int{
	MakeRoom: -1, MoveOut: 0, FixConfig: 1, NewMarks: 2, NewLog: 3, SetSegment: 4, SetIndexAside: 5, Reopen: 6, Rebuild: 7, SetAside: 8, Restore: 9, Adopt: 10, Salvage: 11, RecordLost: 12,
	Rework: 13, TakeOut: 14, Recompute: 15, Revector: 16, Tidy: 17}

// Action is one step of a plan.
type Action struct {
	Do       Verb
	Path     string // of what is changed, in the store
	ID       string // of the memory or assembly, "" when it is none
	From     string // the copy that it heals from, "" when there is none
	Loses    string // what no copy holds, "" when nothing is lost
	Alone    bool   // nobody else may have the store open meanwhile
	Findings []Finding
}

func (a Action) String() string {
	s := string(a.Do)
	switch a.Do {
	case FixConfig, NewMarks, NewLog, SetIndexAside, Reopen, Rebuild, Revector, Tidy: // they name it themselves
	default:
		s += " " + a.Path
	}
	if k := kindAt(a.Path); a.ID != "" && (k == nil || a.Path != k.file(a.ID)) {
		s += " (" + errs.Quote(a.ID) + ")"
	}
	if a.From != "" {
		s += ", from " + a.From
	}
	if a.Loses != "" {
		s += "; loses " + a.Loses
	}
	return s
}

// RepairPlan is what would heal a store, as it was found.
type RepairPlan struct {
	Dir     string
	Actions []Action
	Left    []Finding // for which nothing can be done, or nothing need be
	Summary Summary
	Worst   Severity
	// Processes have the store open. Actions with Alone set wait until they are gone.
	Processes []int
	Unsure    []int // those of them that may be dead: they cannot be seen from here
	o         Options
	takeOut   bool
}

// TakeOutMissing has members taken out of assemblies that are not there. Without it
// they stay: that they are named is no damage, and an import may still bring them.
func (p *RepairPlan) TakeOutMissing() {
	p.takeOut = true
	list, left := &grouped{by: map[string]int{}}, p.Left
	for _, a := range p.Actions {
		for _, f := range a.Findings {
			p.add(list, f)
		}
	}
	p.Left = nil
	for _, f := range left {
		p.add(list, f)
	}
	p.Actions = list.sorted()
}

// Alone are the actions that need that nobody else has the store open.
func (p *RepairPlan) Alone() (n int) {
	for _, a := range p.Actions {
		if a.Alone {
			n++
		}
	}
	return n
}

// Plan looks at a store and says what would heal it. It changes nothing.
func Plan(ctx context.Context, dir string, o Options) (*RepairPlan, error) {
	p := &RepairPlan{Dir: dir, o: o}
	err := p.look(ctx)
	return p, err
}

// split gives the ids of processes, and of these those of whom it cannot be told
// whether they live.
func split(list []wal.Attached) (pids, unsure []int) {
	for _, a := range list {
		pids = append(pids, a.PID)
		if a.Life == vfs.Unknown {
			unsure = append(unsure, a.PID)
		}
	}
	return pids, unsure
}

// look verifies the store and makes actions of what it finds.
func (p *RepairPlan) look(ctx context.Context) error {
	p.Actions, p.Left, p.Worst = nil, nil, Info
	o := p.o
	o.Verify.Summary = &p.Summary
	list := &grouped{by: map[string]int{}}
	for f, err := range Look(ctx, p.Dir, o, func(s Source) { p.Processes, p.Unsure = split(s.Log.Attached()) }) {
		if err != nil {
			return err
		}
		p.add(list, f)
	}
	p.Actions = list.sorted()
	return nil
}

func (p *RepairPlan) add(list *grouped, f Finding) {
	p.Worst = max(p.Worst, f.Severity)
	a, ok := actionFor(f)
	if f.Kind == AssemblyMembers {
		ok = p.takeOut
	}
	if !ok {
		p.Left = append(p.Left, f)
		return
	}
	list.add(a, f)
}

// grouped is actions, each once, with all findings that it heals.
type grouped struct {
	list []Action
	by   map[string]int
}

func (g *grouped) add(a Action, f Finding) {
	key := fmt.Sprint(a.Do, "\x00", a.Path, "\x00", a.ID)
	i, ok := g.by[key]
	if !ok {
		i = len(g.list)
		g.by[key], g.list = i, append(g.list, a)
	}
	g.list[i].Findings = append(g.list[i].Findings, f)
	if g.list[i].Loses == "" {
		g.list[i].Loses = a.Loses
	}
}

func (o *Options) layout(dir string) docfile.Layout {
	return docfile.Layout{FS: o.FS, Root: dir, FileMode: o.FileMode, FolderMode: o.FolderMode}
}

func (o *Options) fileMode() fs.FileMode {
	if o.FileMode == 0 {
		return 0o600
	}
	return o.FileMode
}
