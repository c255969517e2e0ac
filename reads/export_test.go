package reads

// SampleEvery is the number of keys for each sample.
const SampleEvery = sampleEvery

// MaxSamples is the number of samples that are kept of a db.
const MaxSamples = maxSamples
