package working

import "context"

// Append adds an entry to the scratchpad and returns it. The order of entries is the same for all
// readers. The oldest entries beyond Options.MaxNotes are removed.
func (m *Memory) Append(ctx context.Context, text string) (Note, error) {
	if err := checkText("content", text, MaxValue); err != nil {
		return Note{}, err
	}
	res, err := m.do(ctx, OpAppend{Text: text, Keep: limit(m.opts.MaxNotes, DefaultNotes)})
	if err != nil {
		return Note{}, err
	}
	return res.Notes[0], nil
}

// Scratchpad reads the texts of all entries, oldest first.
func (m *Memory) Scratchpad(ctx context.Context) ([]string, error) {
	notes, err := m.Notes(ctx, -1)
	texts := make([]string, len(notes))
	for i := range notes {
		texts[i] = notes[i].Text
	}
	return texts, err
}

// Notes reads the last n entries with their times, oldest first; all entries if n is negative.
func (m *Memory) Notes(ctx context.Context, n int) ([]Note, error) {
	res, err := m.do(ctx, OpNotes{Last: max(n, -1)})
	return res.Notes, err
}

// ClearScratchpad removes all entries and returns their number.
func (m *Memory) ClearScratchpad(ctx context.Context) (int, error) {
	res, err := m.do(ctx, OpClearNotes{})
	return int(res.N), err
}
