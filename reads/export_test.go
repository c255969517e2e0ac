package reads

// SampleEvery is the number of keys for each sample.
const SampleEvery = sampleEvery

// MaxSketches is the number of dbs whose keys are counted.
const MaxSketches = maxSketches
