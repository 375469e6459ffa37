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
	MakeRoom       Verb = "make room for the folder"  // what is in its place goes to quarantine/, and nothing that it leads to
	MoveOut        Verb = "move out of the way"       // what is in the place of a file and is not a file
	FixConfig      Verb = "write a valid config.json" // its invalid members become their defaults
	NewMarks       Verb = "rewrite the checkpoint"
	NewLog         Verb = "begin a new log"          // what can be read of the old one goes to files and index
	SetSegment     Verb = "set the segment aside"    // released: all that it held is elsewhere, or history
	SetIndexAside  Verb = "set the index aside"      // opening rebuilds it
	Reopen         Verb = "rebuild log and index"    // opening does
	Rebuild        Verb = "rebuild the index"        // from log and files
	SetAside       Verb = "set aside"                // into quarantine/, with a note
	Restore        Verb = "restore the file"         // from the copy in log or archive
	Adopt          Verb = "adopt"                    // the file's content becomes the newest version
	Salvage        Verb = "salvage"                  // what can be read of it, marked as partial
	RecordLost     Verb = "record as lost"           // a note with all that is known; the entry is deleted
	RebuildScope   Verb = "rebuild the scope"        // from what log and archive have; its file is set aside
	TakeOut        Verb = "take out what is missing" // members of an assembly that are not there; see RepairPlan.TakeOutMissing
	Recompute      Verb = "recompute the composite"  // from the members' embeddings
	RebuildVectors Verb = "rebuild the vectors"      // from the embeddings in the documents
	RebuildView    Verb = "rebuild the view"         // from the index
	Tidy           Verb = "tidy tmp/"                // what processes left there that are gone
)

// order is the place of a verb among the others.
var order = map[Verb]int{
	MakeRoom: -1, MoveOut: 0, FixConfig: 1, NewMarks: 2, NewLog: 3, SetSegment: 4, SetIndexAside: 5, Reopen: 6, Rebuild: 7, SetAside: 8, Restore: 9, Adopt: 10, Salvage: 11, RecordLost: 12,
	RebuildScope: 13, TakeOut: 14, Recompute: 15, RebuildVectors: 16, RebuildView: 17, Tidy: 18}

// Action is one step of a plan.
type Action struct {
	Do       Verb
	Path     string // of what is changed, in the store
	ID       string // of the memory or assembly, "" when it is none
	From     string // the copy that it heals from, "" when there is none
	Loses    string // what no copy holds, "" when nothing is lost
	Alone    bool   // no other process may have the store open meanwhile
	Findings []Finding
}

func (a Action) String() string {
	s := string(a.Do)
	switch a.Do {
	case FixConfig, NewMarks, NewLog, SetIndexAside, Reopen, Rebuild, RebuildVectors, Tidy: // they name it themselves
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
	Elsewhere []int // ids, there, of those of another PID namespace, such as a container

	takeOut bool
	apply   func(context.Context, *RepairPlan) (*RepairReport, error)
}

// NewPlan returns an empty plan, with the functions that apply it. Programs get their plans from
// PlanRepair.
func NewPlan(dir string, apply func(context.Context, *RepairPlan) (*RepairReport, error)) *RepairPlan {
	return &RepairPlan{Dir: dir, apply: apply}
}

// SetFindings replaces the actions of the plan by actions for findings. An error among them ends
// it.
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

// Apply performs the plan, and verifies. It repeats the search for findings until nothing more can
// be done, so that damage that shows only after an earlier step is repaired as well. Files that
// other processes have open are repaired as far as that is safe.
//
// It may be interrupted at any point, and run again: every action checks its subject before it
// changes anything, and a change is recorded in the manifest, durably, before it is made.
func (p *RepairPlan) Apply(ctx context.Context) (*RepairReport, error) { return p.apply(ctx, p) }

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

// Alone are the actions that need that no other process has the store open.
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
