package varve

import "context"

// Usage is the size of the store, as the limits of config.json count it.
type Usage struct {
	Memories int64 // those in the files, with Expired
	Bytes    int64 // of their files
	Expired  int64 // those of Memories that have expired and are not deleted yet
}

// Usage returns the size of the store. Its cost does not grow with the store.
func (ad Admin) Usage(ctx context.Context) (Usage, error) {
	if err := ad.st.engine.BeginUse(); err != nil {
		return Usage{}, err
	}
	defer ad.st.engine.EndUse()
	all, _, err := ad.st.counts.Tally.Look(ctx, nil)
	if err != nil {
		return Usage{}, err
	}
	_, expired, err := ad.st.engine.Expiring.Count(ctx, ad.st.engine.Env.Clock())
	return Usage{Memories: all.N, Bytes: all.Bytes, Expired: expired}, err
}
