package fswatch

// Told is a source of the events that a test sends.
type Told struct{ c chan event }

// NewTold returns a source.
func NewTold() Told { return Told{make(chan event)} }

// All sends the event that more happened than single events can report.
func (s Told) All() { s.c <- event{all: true} }

func (s Told) Events() <-chan event { return s.c }
func (s Told) Close()               {}

// ByTold returns options with which a watcher takes its events from s.
func (o Options) ByTold(s Told) Options {
	o.source = func(map[string]string) (source, error) { return s, nil }
	return o
}

// Failing returns options with which each attempt to watch folders fails with the error that fail returns, unless that
// is nil.
func (o Options) Failing(fail func() error) Options {
	o.source = func(folders map[string]string) (source, error) {
		if err := fail(); err != nil {
			return nil, err
		}
		return notify(folders)
	}
	return o
}
