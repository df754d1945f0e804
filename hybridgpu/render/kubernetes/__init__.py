"""Site to what Kubernetes takes: device plugin configs, Helm values, the operator's ConfigMaps. Data, then text."""
