package repair

import (
	"context"
	"fmt"
	"iter"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
)

// Verb is what an action does.
type Verb string

// The verbs, in the order in which they are applied.
const (
	// Whatever is in the place of the folder is moved to quarantine/; a link's target is not
	// touched.
	MakeRoom      Verb = "make room for the folder"
	MoveOut       Verb = "move out of the way"       // something that is not a file, in the place of a file
	FixConfig     Verb = "write a valid config.json" // invalid members get their defaults
	NewMarks      Verb = "rewrite the checkpoint"
	NewLog        Verb = "begin a new log"       // what can be read of the old log is written to files and index
	SetSegment    Verb = "set the segment aside" // the log has released it: its data are elsewhere, or history
	SetIndexAside Verb = "set the index aside"   // opening rebuilds it
	Reopen        Verb = "rebuild log and index" // opening the store does it
	Rebuild       Verb = "rebuild the index"     // from log and files
	SetAside      Verb = "set aside"             // into quarantine/, with a note
	Restore       Verb = "restore the file"      // from the copy in log or archive
	Adopt         Verb = "adopt"                 // the file's content becomes the newest version
	Salvage       Verb = "salvage"               // the readable part becomes a version marked as partial
	RecordLost    Verb = "record as lost"        // a note with all that is known is written; the entry is deleted
	RebuildScope  Verb = "rebuild the scope"     // from log and archive; its file is set aside
	// Members of an assembly that do not exist are removed; see RepairPlan.TakeOutMissing.
	TakeOut        Verb = "take out what is missing"
	Recompute      Verb = "recompute the composite" // from the members' embeddings
	RebuildVectors Verb = "rebuild the vectors"     // from the embeddings in the documents
	RebuildView    Verb = "rebuild the view"        // from the index
	Tidy           Verb = "tidy tmp/"               // leftovers of ended processes
)

// order is the position of a verb in the order of application.
var order = map[Verb]int{
	MakeRoom: -1, MoveOut: 0, FixConfig: 1, NewMarks: 2, NewLog: 3, SetSegment: 4, SetIndexAside: 5, Reopen: 6, Rebuild: 7,
	SetAside: 8, Restore: 9, Adopt: 10, Salvage: 11, RecordLost: 12,
	RebuildScope: 13, TakeOut: 14, Recompute: 15, RebuildVectors: 16, RebuildView: 17, Tidy: 18}

// Action is one step of a plan.
type Action struct {
	Do       Verb
	Path     string // path in the store of the changed file
	ID       string // of the memory or assembly, "" if the action is not about one
	From     string // the copy that is used, "" if none is
	Loses    string // the data that are lost, "" if none are
	Alone    bool   // no other process may have the store open meanwhile
	Findings []Finding
}

func (a Action) String() string {
	s := string(a.Do)
	switch a.Do {
	// the verb names the object
	case FixConfig, NewMarks, NewLog, SetIndexAside, Reopen, Rebuild, RebuildVectors, Tidy:
	default:
		s += " " + a.Path
	}
	if k := kind.At(a.Path); a.ID != "" && (k == nil || a.Path != k.File(a.ID)) {
		s += " (" + human.Quote(a.ID) + ")"
	}
	if a.From != "" {
		s += ", from " + a.From
	}
	if a.Loses != "" {
		s += "; loses " + a.Loses
	}
	return s
}

// RepairPlan has the actions that would repair a store in the state that verify found.
type RepairPlan struct {
	Dir     string
	Actions []Action
	Left    []Finding // findings for which no action is possible or necessary
	Summary Summary
	Worst   Severity
	// Processes are the ids of processes that have the store open. Actions with Alone set wait
	// until they have ended.
	Processes []int
	Unsure    []int // those of Processes that may have ended: this process cannot see them
	Elsewhere []int // ids of processes in another PID namespace, such as a container, as they are there

	takeOut bool
	apply   func(context.Context, *RepairPlan) (*RepairReport, error)
}

// NewPlan returns an empty plan, with the functions that apply it. Programs get their plans from
// PlanRepair.
func NewPlan(dir string, apply func(context.Context, *RepairPlan) (*RepairReport, error)) *RepairPlan {
	return &RepairPlan{Dir: dir, apply: apply}
}

// SetFindings replaces the actions of the plan by actions for findings. It returns the first error
// among them.
func (p *RepairPlan) SetFindings(findings iter.Seq2[Finding, error]) error {
	p.Actions, p.Left, p.Worst = nil, nil, Info
	list := &grouped{by: map[string]int{}}
	for f, err := range findings {
		if err != nil {
			return err
		}
		p.add(list, f)
	}
	p.Actions = list.sorted()
	return nil
}

// Apply performs the plan, and verifies the store. It repeats this until nothing more can be done,
// so that damage that shows only after an earlier step is repaired as well. Files that other
// processes have open are repaired as far as that is safe.
//
// Apply may be interrupted at any point, and run again: every action checks its target before it
// changes anything, and keeps the previous file in quarantine/, durably, before it replaces or
// removes it.
func (p *RepairPlan) Apply(ctx context.Context) (*RepairReport, error) { return p.apply(ctx, p) }

// TakeOutMissing adds actions that remove missing members from assemblies. Without it they stay: a
// missing member is not damage, and an import may still create it.
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

// Alone returns the number of actions that need that no other process has the store open.
func (p *RepairPlan) Alone() (n int) {
	for _, a := range p.Actions {
		if a.Alone {
			n++
		}
	}
	return n
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

// grouped is a list of actions, each once, with all findings that it repairs.
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
