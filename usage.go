package varve

import "context"

// Usage is how much there is, as the limits of config.json count it.
type Usage struct {
	Memories int64 // those in the files, with Expired
	Bytes    int64 // of their files
	Expired  int64 // of Memories: absent already, and not deleted yet
}

// Usage says how much there is. What it costs does not grow with the store.
func (ad Admin) Usage(ctx context.Context) (Usage, error) {
	if err := ad.st.engine.Begun(); err != nil {
		return Usage{}, err
	}
	defer ad.st.engine.Ended()
	all, _, err := ad.st.counts.Tally.Look(ctx, nil)
	if err != nil {
		return Usage{}, err
	}
	_, expired, err := ad.st.engine.Expiring.Count(ctx, ad.st.engine.Env.Clock())
	return Usage{Memories: all.N, Bytes: all.Bytes, Expired: expired}, err
}
