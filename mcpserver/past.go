package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
)

func (c *memoryCall) undo(ctx context.Context) (*answer, error) {
	o := varve.UndoOptions{Partial: c.flag("partial"), Position: uint64(c.number("version", 0))}
	if since := c.text("since"); since != "" {
		if o.Position != 0 {
			return nil, errors.New("version and since: give one of them")
		}
		p, err := reads("since", since, c.now)
		if err != nil {
			return nil, err
		}
		o.Since = p.from
	}
	preview := c.flag("preview")
	plan, err := c.view.Undo(ctx, c.own, o, preview)
	var conflicts *varve.UndoError
	switch {
	case errors.As(err, &conflicts):
		lines := c.conflicts(&conflicts.Plan)
		if conflicts.Plan.Done == 0 {
			return nil, fmt.Errorf("nothing was taken back: later changes are built upon some of these changes → "+
				"with \"partial\":true, undo takes back the other changes%s", joined(lines))
		}
		plan = &conflicts.Plan
	case err != nil:
		return nil, err
	}
	done, how := plan.Done, "took back"
	if preview {
		done, how = len(plan.Changes), "would take back"
	}
	commits := plural(plan.Commits, "commit")
	lines := []string{fmt.Sprintf("%s %s, %s", how, commits, plural(done, "change"))}
	for i := range plan.Changes {
		if i == mostNamed {
			lines = append(lines, fmt.Sprintf("and %d more", len(plan.Changes)-i))
			break
		}
		lines = append(lines, c.taken(ctx, &plan.Changes[i]))
	}
	lines = append(lines, c.conflicts(plan)...)
	if len(plan.Scopes) > 0 {
		lines = append(lines, "working memory stays as it is")
	}
	return c.linesAnswer(lines, nil), nil
}

func joined(lines []string) (s string) {
	for _, l := range lines {
		s += "\n" + l
	}
	return s
}

// taken returns the line of an answer that describes one change made by undo.
func (c *memoryCall) taken(ctx context.Context, ch *varve.UndoChange) string {
	what := map[string]string{varve.UndoRestore: "put back", varve.UndoUndelete: "undeleted",
		varve.UndoDelete: "deleted"}[ch.What]
	if ch.Kind == "note" {
		return what + " note " + oneLine(c.notePath(ch.ID))
	}
	if ch.Kind != "memory" {
		return what + " " + ch.Kind
	}
	all, err := c.view.History(ctx, ch.ID)
	if err == nil {
		for i := len(all) - 1; i >= 0; i-- {
			v := &all[i]
			if v.Deleted || ch.What != varve.UndoDelete && v.LSN != ch.Restores {
				continue
			}
			text, isCut := cut(v.Memory.Content, shownChars)
			if isCut {
				text += " …"
			}
			return what + " " + head(&v.Memory, c.starred(&v.Memory), c.now.Location()) + oneLine(text)
		}
	}
	return what + " [" + project.Ending(ch.ID) + "]"
}

func (c *memoryCall) conflicts(p *varve.UndoPlan) (lines []string) {
	for i := range p.Conflicts {
		if i == mostNamed {
			break
		}
		of := &p.Conflicts[i]
		name := project.Ending(of.ID)
		if of.Kind == "note" {
			name = c.notePath(of.ID)
		}
		lines = append(lines, fmt.Sprintf("stays [%s]: %v", oneLine(name), of.Err))
	}
	return lines
}

func (c *memoryCall) history(ctx context.Context) (*answer, error) {
	id, err := c.target(ctx, false)
	if err != nil {
		return nil, err
	}
	all, err := c.view.History(ctx, id)
	if err != nil {
		return nil, err
	}
	lines := []string{fmt.Sprintf("[%s] %s, the newest first", oneLine(project.Ending(id)), plural(len(all), "version"))}
	limit := c.number("limit", 10)
	for i := len(all) - 1; i >= 0; i-- {
		if len(all)-i > limit {
			lines = append(lines, fmt.Sprintf("and %d older", i+1))
			break
		}
		v := &all[i]
		by, text := c.writer(v), "deleted"
		if !v.Deleted {
			var isCut bool
			if text, isCut = cut(v.Memory.Content, shownChars); isCut {
				text += " …"
			}
			text = oneLine(text)
		}
		lines = append(lines, fmt.Sprintf("%d · %s · %s: %s", v.LSN, v.Time.In(c.now.Location()).Format(time.DateTime), by,
			text))
	}
	return c.linesAnswer(lines, nil), nil
}

// writer returns the name of a version's writer, as an answer shows it.
func (c *memoryCall) writer(v *project.Version) string {
	w := &v.Writer
	by := w.Client
	if w.ClientVersion != "" && by != "" {
		by += " " + w.ClientVersion
	}
	for _, name := range []string{w.Agent, w.Program} {
		if by == "" {
			by = name
		}
	}
	if by == "" {
		by = "unknown"
	}
	switch c.own.Name {
	case "":
	case w.Session, w.Token:
		by += " (you)"
	default:
		if w.Session != "" {
			by += " (" + w.Session + ")"
		}
	}
	if v.Cause != "" {
		by += ", " + v.Cause
	}
	return oneLine(by)
}
