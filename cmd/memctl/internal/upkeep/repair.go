package upkeep

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/repair"
)

func Repair(a *cli.App) *cobra.Command {
	var apply, members bool
	c := &cobra.Command{
		Use:   "repair",
		Short: "Repair what verify finds",
		Long: `Print what would repair the store: each step, the copy from which it restores, and what no copy
has. Nothing is changed without --apply. Replaced or removed files are in quarantine/ afterwards,
with a note that says why, and verify no longer finds anything.

An assembly may name memories that do not exist, if it was imported that way. This is not damage
and is not changed; with --missing-members those ids are removed from the assembly.

A repair has no undo: what it rebuilds is derived, and the files that it replaced are in quarantine/.
memctl quarantine restore brings a document back from there.`,
		Example: "  memctl repair                    what would be done\n  memctl repair --apply\n  memctl quarantine list " +
			"          what it set aside",
		Args: cli.NoArguments,
		RunE: a.DoWhole(func(cmd *cobra.Command, _ []string) error {
			dir, err := a.Locate()
			if err != nil {
				return err
			}
			return repairStore(cmd.Context(), a, dir, apply, members)
		}),
	}
	c.Flags().BoolVar(&apply, "apply", false, "perform the repair; without --apply the steps are only shown")
	c.Flags().BoolVar(&members, "missing-members", false, "remove ids of missing memories from assemblies")
	return c
}

// action is a step of the plan of a repair, or the result of that step, in the JSON output.
type action struct {
	Do     string   `json:"do"`
	Path   string   `json:"path,omitempty"`
	ID     string   `json:"id,omitempty"`
	From   string   `json:"from,omitempty"`
	Loses  string   `json:"loses,omitempty"`
	Alone  bool     `json:"alone,omitempty"` // no other process may have the store open
	For    []string `json:"for"`             // kinds of the findings that the action repairs
	Result string   `json:"result,omitempty"`
	Where  string   `json:"where,omitempty"`
	Error  string   `json:"error,omitempty"`
}

func actionOf(x varve.RepairAction) action {
	r := action{Do: string(x.Do), Path: x.Path, ID: x.ID, From: x.From, Loses: x.Loses, Alone: x.Alone, For: []string{}}
	for _, f := range x.Findings {
		r.For = append(r.For, f.String())
	}
	return r
}

// storeOptions returns the options with which a store is verified and repaired.
func storeOptions(a *cli.App) *varve.Options {
	return &varve.Options{MustExist: true, LockWait: a.Wait, Clock: a.Clock, Listener: a.Heard, NoBackground: true}
}

func repairStore(ctx context.Context, a *cli.App, dir string, apply, members bool) error {
	progress, done := a.Bar("verifying")
	plan, err := varve.PlanRepair(ctx, dir, storeOptions(a), varve.VerifyOptions{Progress: progress})
	if err != nil {
		done()
		return err
	}
	if members {
		plan.TakeOutMissing()
	}
	if !apply {
		done()
		showPlan(a, plan)
		return nil
	}
	report, err := plan.Apply(ctx)
	done()
	showRepair(a, report, err)
	return err
}

// running returns process ids as text for a message. local has the ids of processes in this PID namespace.
// elsewhere has the ids of processes in other PID namespaces; the text marks them, because the same ids mean other
// processes in this namespace.
func running(local, elsewhere []int) string {
	s := ""
	if len(local) > 0 {
		s = fmt.Sprint(local)
	}
	if len(elsewhere) > 0 {
		if s != "" {
			s += " and "
		}
		s += fmt.Sprintf("%v of another PID namespace (a container: stop them there)", elsewhere)
	}
	return s
}

// mayBeDead returns a text about processes that this process cannot see, and that may therefore have ended. It returns
// "" if pids is empty.
func mayBeDead(pids []int) string {
	if len(pids) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%v may have ended, or are in another container: they are not visible from here)", pids)
}

// showPlan prints the plan of a repair. If the plan has an action, it also records for the exit code that a
// repair is needed.
func showPlan(a *cli.App, p *varve.RepairPlan) {
	if a.Document != nil {
		a.Document.Begin("actions")
		for _, x := range p.Actions {
			a.Document.Item(actionOf(x))
		}
		a.Document.Member("processes", withoutSelf(p.Processes))
	} else {
		for _, x := range p.Actions {
			a.Say("%s", cli.Printable(x.String()))
			for i, f := range x.Findings {
				if i == fewInfos {
					a.Say("  for %d more findings", len(x.Findings)-i)
					break
				}
				a.Say("  for %s", cli.Printable(f.String()))
			}
		}
	}
	var v verdict
	for _, f := range plannedFor(p) {
		v.add(&f)
	}
	for _, x := range p.Actions {
		if x.Loses != "" {
			v.loses = append(v.loses, x.Loses)
		}
	}
	showMembers(a, p)
	if len(p.Actions) == 0 && v.count() == 0 {
		a.Say("nothing to repair")
		saySetAside(a, p.Summary.Quarantined)
		return
	}
	if n, pids := p.Alone(), withoutSelf(p.Processes); n > 0 && len(pids)+len(p.Elsewhere) > 0 {
		a.Note("%s that no other process has the store open; first stop the processes %s%s",
			cli.Count(n, "step requires", "steps require"), running(pids, p.Elsewhere), mayBeDead(p.Unsure))
	}
	for _, f := range p.Left {
		if f.Severity != repair.Info && a.Document == nil {
			a.Say("memctl repair cannot repair this finding: %s", cli.Printable(f.String()))
		}
	}
	if len(p.Actions) > 0 {
		a.Say("\nnothing was changed; memctl repair --apply performs the steps")
	}
	v.note(a, "memctl repair --apply performs the planned steps")
}

// showMembers prints a note about assemblies with missing members, which a repair leaves unchanged.
func showMembers(a *cli.App, p *varve.RepairPlan) {
	n := 0
	for _, f := range p.Left {
		if f.Kind == repair.AssemblyMembers {
			n++
		}
	}
	if n > 0 && a.Document == nil {
		a.Say("%s; --missing-members removes these ids",
			cli.Count(n, "assembly names missing memories", "assemblies name missing memories"))
	}
}

func plannedFor(p *varve.RepairPlan) (list []varve.Finding) {
	for _, x := range p.Actions {
		list = append(list, x.Findings...)
	}
	return append(list, p.Left...)
}

func showRepair(a *cli.App, r *varve.RepairReport, err error) {
	a.Document.Begin("actions")
	for _, d := range r.Done {
		x := actionOf(d.Action)
		x.Result, x.Where = d.Result, d.Where
		if d.Err != nil {
			x.Error = d.Err.Error()
		}
		if a.Document != nil {
			a.Document.Item(x)
			continue
		}
		switch {
		case d.Err != nil:
			a.Say("%s: not performed: %s", cli.Printable(d.Action.String()), cli.Printable(x.Error))
		default:
			a.Say("%s: %s", cli.Printable(d.Action.String()), cli.Printable(d.Result))
		}
	}
	var v verdict
	a.Document.Begin("remaining")
	for i := range r.Remaining {
		v.add(&r.Remaining[i])
		if r.Remaining[i].Severity == repair.Info {
			continue
		}
		if a.Document != nil {
			tellFinding(a, &r.Remaining[i])
			continue
		}
		a.Say("remains: %s", cli.Printable(r.Remaining[i].String()))
	}
	if pids := withoutSelf(r.Processes); len(r.Waiting) > 0 {
		a.Note("%s until no other process has the store open; stop the processes %s%s and run memctl repair --apply again",
			cli.Count(len(r.Waiting), "step waits", "steps wait"), running(pids, r.Elsewhere), mayBeDead(r.Unsure))
	}
	if a.Document != nil {
		a.Document.Begin("waiting")
		for _, x := range r.Waiting {
			a.Document.Item(actionOf(x))
		}
		a.Document.Member("processes", withoutSelf(r.Processes))
		a.Document.Member("summary", summaryOf(&r.Summary, v.count()))
	} else if v.count() == 0 && err == nil { // otherwise the store was not verified
		a.Say("verified: %s", &v)
	}
	saySetAside(a, r.Summary.Quarantined)
	v.note(a, "memctl verify names the remedy for each remaining finding")
}

// saySetAside prints the number of files in quarantine/ and the command that shows them.
func saySetAside(a *cli.App, n int64) {
	if n > 0 {
		a.Say("%s in quarantine/: memctl quarantine list", cli.Count(int(n), "file is", "files are"))
	}
}

// withoutSelf returns pids without the id of this process.
func withoutSelf(pids []int) []int {
	list := []int{}
	for _, pid := range pids {
		if pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}
