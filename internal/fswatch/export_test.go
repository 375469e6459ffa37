package fswatch

// Told is a source of what a test wants to tell.
type Told struct{ c chan event }

// NewTold makes one.
func NewTold() Told { return Told{make(chan event)} }

// All tells that more happened than can be told.
func (s Told) All() { s.c <- event{all: true} }

func (s Told) Events() <-chan event { return s.c }
func (s Told) Close()               {}

// ByTold has a watcher listen to s.
func (o Options) ByTold(s Told) Options {
	o.source = func(map[string]string) (source, error) { return s, nil }
	return o
}

// Failing has each attempt to watch folders fail with the error of fail, if it has one.
func (o Options) Failing(fail func() error) Options {
	o.source = func(folders map[string]string) (source, error) {
		if err := fail(); err != nil {
			return nil, err
		}
		return notify(folders)
	}
	return o
}
