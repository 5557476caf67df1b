export function InspectorView() {
  return (
    <div class="view page">
      <h1 tabIndex={-1}>Inspector</h1>
    </div>
  );
}
