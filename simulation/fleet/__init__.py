"""A fleet in virtual time: machines of unequal speed, model loads, arrivals; the product's own desk beside policies it is not."""
